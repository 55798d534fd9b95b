"""Which schemas are taken, what they cost, and what is said of an answer that does not fit."""

from __future__ import annotations

import copy
import socketserver
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.structured import check
from gateway.structured.bounds import MAX_BYTES, MAX_DEPTH, SchemaRefused
from gateway.structured.check import Schemas


def refused(schema: Any) -> str:
    with pytest.raises(SchemaRefused) as caught:
        Schemas().checker(schema)
    return str(caught.value)


def told(schema: Any, value: Any) -> list[tuple[str, str, str]]:
    checker = Schemas().checker(schema)
    assert not checker.fits(value)
    return [(v.pointer, v.found, v.wanted) for v in checker.violations(value)]


# --------------------------------------------------------------------------- the schema


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """An HTTP address that notes whoever asks."""
    asked: list[str] = []

    class Note(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            asked.append("asked")

    with socketserver.TCPServer(("127.0.0.1", 0), Note) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/schema.json", asked
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_nothing_is_fetched(listener: tuple[str, list[str]], keyword: str) -> None:
    url, asked = listener
    assert "nothing is ever fetched" in refused({"properties": {"a": {keyword: url}}})
    assert "nothing is ever fetched" in refused({keyword: "file:///etc/passwd"})
    assert "nothing is ever fetched" in refused({"$id": url, keyword: "other.json"})
    assert asked == []


def test_a_schema_that_says_where_it_lives_is_not_looked_up(
    listener: tuple[str, list[str]],
) -> None:
    url, asked = listener
    checker = Schemas().checker({"$schema": url, "$id": url, "type": "object"})
    assert checker.fits({})
    assert asked == []


def test_references_within() -> None:
    schema = {
        "$defs": {"a/b": {"type": "string"}, "c": {"$anchor": "c", "type": "integer"}},
        "properties": {"x": {"$ref": "#/$defs/a~1b"}, "y": {"$ref": "#c"}, "z": {"$ref": "#"}},
    }
    checker = Schemas().checker(schema)
    assert checker.fits({"x": "a", "y": 1, "z": {"x": "b"}})
    assert not checker.fits({"z": {"z": {"y": "no"}}})
    assert "points to nothing" in refused({"$ref": "#/$defs/none"})
    assert "points to nothing" in refused({"$ref": "#none"})
    assert "$id of its own" in refused({"properties": {"a": {"$id": "x"}}})


def test_size_and_depth_are_bounded() -> None:
    assert "bytes" in refused({"description": "x" * MAX_BYTES})
    deep: Any = {}
    for _ in range(MAX_DEPTH + 1):
        deep = {"not": deep}
    assert "levels deep" in refused(deep)
    assert "levels deep" in refused({"$defs": {"a": deep}})


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize("through", ["", "properties"])
def test_references_that_double_are_refused(keyword: str, through: str) -> None:
    def link(number: int) -> dict[str, Any]:
        both = {keyword: [{"$ref": f"#/$defs/{number}"}, {"$ref": f"#/$defs/{number}"}]}
        return {through: {"x": both}} if through else both

    chain = {str(number): link(number + 1) for number in range(30)}
    schema = {"$defs": {**chain, "30": {"type": "string"}}, "$ref": "#/$defs/0"}
    started = time.process_time()
    assert "written out" in refused(schema)
    assert time.process_time() - started < 2


def doubling() -> dict[str, Any]:
    link = {
        str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}, {"$ref": f"#/$defs/{n + 1}"}]}
        for n in range(30)
    }
    return {**link, "30": {}}


@pytest.mark.parametrize("name", ["default", "const", "enum", "examples", "$defs"])
def test_a_property_may_be_called_like_a_keyword(name: str) -> None:
    hidden = {"properties": {name: {"$ref": "#/$defs/0"}}, "$defs": doubling()}
    assert "written out" in refused(hidden)
    looking = {"properties": {name: {"pattern": "^(?!a)b"}}}
    assert not Schemas().checker(looking).fits({name: "c"})
    assert "bounded time" in refused({"properties": {name: {"pattern": "(?!a)b"}}})


def test_an_anchor_means_one_place() -> None:
    twice = {"$defs": {**doubling(), "a": {"$anchor": "x", "$ref": "#/$defs/0"}}}
    twice |= {"const": {"$anchor": "x"}, "allOf": [{"$ref": "#x"}]}
    assert "stands in it twice" in refused(twice)


def test_chains_of_references_have_an_end() -> None:
    def chain(length: int) -> dict[str, Any]:
        links = {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(length)}
        return {"$defs": {**links, str(length): {"type": "string"}}, "$ref": "#/$defs/0"}

    assert not Schemas().checker(chain(100)).fits(1)
    assert "too often" in refused(chain(5000))
    loop = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    assert Schemas().checker({**loop, "$ref": "#/$defs/a"}).fits(1)


def test_recursion_is_no_doubling() -> None:
    node = {
        "type": "object",
        "properties": {
            "left": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            "right": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
        },
        "required": ["left", "right"],
    }
    checker = Schemas().checker({"$defs": {"node": node}, "$ref": "#/$defs/node"})
    tree: Any = None
    for _ in range(10):
        tree = {"left": tree, "right": tree}
    assert checker.fits(tree)
    assert not checker.fits({"left": {"left": 1, "right": None}, "right": None})


def test_a_large_answer_against_a_costly_schema_is_not_checked() -> None:
    costly = {"anyOf": [{"minProperties": n} for n in range(1000)]}
    checker = Schemas().checker({"type": "array", "items": costly})
    assert checker.affordable('[{"a":1}]')
    assert not checker.affordable("[" + "1," * 100_000 + "1]")
    assert checker.affords([{"a": 1}])
    assert not checker.affords([1] * 100_000)


@pytest.mark.parametrize("fits", [True, False])
def test_the_dearest_answer_that_is_checked_takes_half_a_second(fits: bool) -> None:
    """Alone on its machine; a busy one is given thirty times as long."""
    alternatives = [{"pattern": f"^(a|b{n}){{1,9}}$"} for n in range(1200)]
    last = {"pattern": "^(ab)+$" if fits else "^no$"}
    checker = Schemas().checker({"items": {"anyOf": [*alternatives, last]}})
    value = ["ab" * 5] * (check.MAX_CHECKS // checker.work - 2)
    assert checker.affords(value)
    started = time.process_time()
    assert checker.fits(value) is fits
    assert fits or checker.violations(value)
    assert time.process_time() - started < 15


@pytest.mark.parametrize(
    "pattern", [r"^(a+)+$", r"^(?=(a+)+$)a", r"^(?!(a|aa)+b)a+$", r"(a|a)*$", r"^(a|aa)+$"]
)
def test_patterns_are_linear(pattern: str) -> None:
    checker = Schemas().checker({"type": "string", "pattern": pattern})
    started = time.process_time()
    checker.fits("a" * 100_000 + "!")
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "pattern",
    [r"(?=a)b", r"^(a+)\1$", r"^a(?<=a)b", r"^(?!a)b|c", r"^(?:(?=.*x)a)*$", r"^(?!(?=a)b)c"],
)
def test_patterns_that_can_t_be_linear_are_refused(pattern: str) -> None:
    assert "bounded time" in refused({"type": "string", "pattern": pattern})


def test_a_pattern_that_explodes_when_compiled_is_refused() -> None:
    assert "pattern" in refused({"type": "string", "pattern": "(a{1000}){1000}"})
    assert "pattern" in refused({"type": "string", "pattern": "("})


PASSWORD = r"^(?=.*\d)(?=.*[a-z])(?!.*\s).{4,8}$"


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ("abc1", True),
        ("abcd", False),
        ("a 11", False),
        ("a1", False),
        ("abcdefgh1", False),
        (7, True),
    ],
)
def test_look_ahead_at_the_start_means_what_it_meant(value: Any, fits: bool) -> None:
    assert Schemas().checker({"pattern": PASSWORD}).fits(value) is fits


DECIMAL = r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"


@pytest.mark.parametrize(
    ("value", "fits"), [("12.50", True), (".5", True), (".", False), ("", False)]
)
def test_a_decimal_as_some_generators_write_it(value: str, fits: bool) -> None:
    assert Schemas().checker({"type": "string", "pattern": DECIMAL}).fits(value) is fits


@pytest.mark.parametrize(
    "schema", [{"type": "text"}, {"properties": []}, {"minLength": -1}, {"items": [{}]}]
)
def test_what_is_no_schema_is_refused_with_its_place(schema: Any) -> None:
    assert "draft 2020-12" in refused(schema)


def test_formats_are_checked_and_unknown_ones_are_not() -> None:
    checker = Schemas().checker({"properties": {"d": {"format": "date"}, "o": {"format": "odd"}}})
    assert checker.fits({"d": "2026-11-30", "o": "x"})
    assert not checker.fits({"d": "30.11.2026"})


# --------------------------------------------------------------------------- the cache


def test_schemas_are_compiled_once_and_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = Schemas()
    first = schemas.checker({"type": "string"})
    assert schemas.checker({"type": "string"}) is first
    for number in range(check.MAX_KEPT + 10):
        schemas.checker({"const": number})
    assert len(schemas) == check.MAX_KEPT
    assert schemas.checker({"type": "string"}) is not first
    monkeypatch.setattr(check, "MAX_KEPT_BYTES", 100)
    schemas.checker({"const": "x" * 80})
    assert len(schemas) == 1


def test_a_changed_schema_is_another_one() -> None:
    schemas = Schemas()
    schema = {"properties": {"a": {"type": "string"}}}
    before = copy.deepcopy(schema)
    assert not schemas.checker(schema).fits({"a": 1})
    assert schema == before
    schema["properties"]["a"]["type"] = "integer"
    assert schemas.checker(schema).fits({"a": 1})
    assert not schemas.checker(before).fits({"a": 1})


# --------------------------------------------------------------------------- the words


def test_each_violation_has_its_place_what_was_found_and_what_is_wanted() -> None:
    schema = {
        "type": "object",
        "properties": {
            "tags": {"type": "array", "minItems": 2, "items": {"type": "string"}},
            "score": {"type": "integer", "maximum": 10},
            "a/b": {"enum": ["x", "y"]},
        },
        "required": ["tags", "score", "name"],
        "additionalProperties": False,
    }
    value = {"tags": [3], "score": 11, "a/b": "z", "more": 1}
    assert sorted(told(schema, value)) == [
        ("", '{"tags":[3],"score":11,"a/b":"z","more":1}', 'no property "more"'),
        (
            "",
            '{"tags":[3],"score":11,"a/b":"z","more":1}',
            'the property "name", which is missing',
        ),
        ("/a~1b", '"z"', 'one of "x", "y"'),
        ("/score", "11", "at most 10"),
        ("/tags", "[3]", "at least 2 items"),
        ("/tags/0", "3", "type string"),
    ]


EACH = {
    "type": ({"type": ["string", "null"]}, 1, "type null or type string"),
    "const": ({"const": {"a": 1}}, 2, 'exactly {"a":1}'),
    "minimum": ({"minimum": 3}, 1, "at least 3"),
    "exclusiveMinimum": ({"exclusiveMinimum": 3}, 3, "more than 3"),
    "exclusiveMaximum": ({"exclusiveMaximum": 3}, 3, "less than 3"),
    "multipleOf": ({"multipleOf": 2}, 3, "a multiple of 2"),
    "minLength": ({"minLength": 2}, "a", "at least 2 characters"),
    "maxLength": ({"maxLength": 2}, "abc", "at most 2 characters"),
    "pattern": ({"pattern": "^a"}, "b", "text that matches ^a"),
    "format": ({"format": "date"}, "b", "text in the format date"),
    "maxItems": ({"maxItems": 1}, [1, 2], "at most 1 items"),
    "uniqueItems": ({"uniqueItems": True}, [1, 1], "no item twice"),
    "minProperties": ({"minProperties": 1}, {}, "at least 1 properties"),
    "maxProperties": ({"maxProperties": 0}, {"a": 1}, "at most 0 properties"),
    "not": ({"not": {"type": "null"}}, None, 'nothing that fits {"type":"null"}'),
    "if": (
        {"if": {"type": "object"}, "then": {"required": ["z"]}},
        {},
        'the property "z", which is missing',
    ),
    "unevaluated": ({"unevaluatedProperties": False}, {"a": 1}, 'no property "a"'),
    "unevaluated beside others": (
        {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
        {"a": 1, "b": 2},
        'no property "a", "b"',
    ),
    "unevaluatedItems": (
        {"prefixItems": [True], "unevaluatedItems": False},
        [1, 2],
        "no further items",
    ),
    "contains": (
        {"contains": {"type": "string"}, "minContains": 2},
        ["a", 1],
        "items of the kind and number that `contains` asks for",
    ),
    "propertyNames": (
        {"propertyNames": {"maxLength": 1}},
        {"ab": 1},
        'a property\'s name that fits {"maxLength":1}',
    ),
    "dependentSchemas": (
        {"dependentSchemas": {"a": {"required": ["b"]}}},
        {"a": 1},
        'the property "b", which is missing',
    ),
    "dependentRequired": (
        {"dependentRequired": {"a": ["b"]}},
        {"a": 1},
        'the property "b", which is missing',
    ),
    "patternProperties": (
        {"patternProperties": {"^x": {"type": "null"}}, "additionalProperties": {"type": "string"}},
        {"x1": 1, "y": "s"},
        "type null",
    ),
    "additionalProperties": (
        {"properties": {"a": True}, "additionalProperties": {"type": "string"}},
        {"a": 1, "y": 2},
        "type string",
    ),
    "prefixItems": ({"prefixItems": [{"type": "string"}], "items": False}, [1], "type string"),
    "items": ({"prefixItems": [True], "items": False}, [1, 2], "nothing here"),
    "false": ({"properties": {"a": False}}, {"a": 1}, "nothing here"),
    "allOf": ({"allOf": [{"type": "string"}, {"minimum": 3}]}, 1, "type string", "at least 3"),
    "not behind a reference": (
        {"not": {"$ref": "#/$defs/d"}, "$defs": {"d": {"type": "null"}}},
        None,
        'nothing that fits {"$ref":"#/$defs/d"}',
    ),
}


@pytest.mark.parametrize("name", EACH)
def test_the_words_of_each_keyword(name: str) -> None:
    schema, value, *wanted = EACH[name]
    assert [words for _, _, words in told(schema, value)] == wanted


KINDS = [f"kind{number}" for number in range(20)]


def recursive_union(keyword: str) -> dict[str, Any]:
    def node(kind: str) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "children": {"type": "array", "items": {"$ref": "#/$defs/any"}},
                "kind": {"const": kind},
                "label": {"type": "string"},
            },
            "required": ["kind"],
        }

    union = {keyword: [{"$ref": f"#/$defs/{kind}"} for kind in KINDS]}
    return {"$defs": {**{k: node(k) for k in KINDS}, "any": union}, "$ref": "#/$defs/any"}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_a_deep_union_is_told_by_its_nearest_branch_and_in_bounded_time(keyword: str) -> None:
    value: Any = {"kind": "kind19", "label": 3}
    for _ in range(10):
        value = {"kind": "kind7", "children": [value]}
    started = time.process_time()
    place = "/children/0" * 10 + "/label"
    assert told(recursive_union(keyword), value) == [(place, "3", "type string")]
    assert time.process_time() - started < 2


TWICE = {
    "allOf": {"allOf": [{"items": {"$ref": "#"}}] * 2, "type": "array"},
    "anyOf": {"anyOf": [{"items": {"$ref": "#"}, "type": "array"}] * 2},
    "oneOf": {
        "oneOf": [
            {"items": {"$ref": "#"}, "type": "array", "minItems": 1},
            {"items": {"$ref": "#"}, "type": "array", "maxItems": 0},
        ]
    },
    "contains": {"items": {"$ref": "#"}, "contains": {"$ref": "#"}, "type": "array"},
    "unevaluated": {
        "allOf": [{"prefixItems": [{"$ref": "#"}]}],
        "anyOf": [{"prefixItems": [{"$ref": "#"}]}, {"maxItems": 0}],
        "unevaluatedItems": False,
        "type": "array",
    },
}


@pytest.mark.parametrize("name", TWICE)
def test_what_a_schema_reaches_by_two_ways_is_not_looked_at_twice(name: str) -> None:
    """The validator's own list of errors doubles at each level: 20 levels took 8 s."""
    value: Any = 1
    for _ in range(150):
        value = [value]
    checker = Schemas().checker(TWICE[name])
    started = time.process_time()
    assert not checker.fits(value)
    assert checker.violations(value)
    assert time.process_time() - started < 2


def looking_back(keyword: str, levels: int, ways: int) -> dict[str, Any]:
    """Schemas within schemas, each of which looks back at what the inner ones have seen."""
    inner = {
        f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * ways, "unevaluatedProperties": False}
        for n in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**inner, f"d{levels}": {"properties": {"a": True}}}}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize(("levels", "ways"), [(40, 1), (12, 2)])
def test_looking_back_at_each_level_is_refused(keyword: str, levels: int, ways: int) -> None:
    """1,400 bytes of it kept the validator busy for 15 s, and 40 levels for ever."""
    started = time.process_time()
    assert "written out" in refused(looking_back(keyword, levels, ways))
    checker = Schemas().checker(looking_back(keyword, 4, ways))
    assert not checker.fits({"b": 1})
    assert time.process_time() - started < 2


def test_schemas_that_close_their_objects_so_are_taken() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(12):
        schema = {
            "type": "object",
            "properties": {"a": schema},
            "unevaluatedProperties": False,
        }
    assert told(schema, {"a": {"b": 1}}) == [("/a", '{"b":1}', 'no property "b"')]


def test_of_many_items_those_are_told_that_do_not_fit() -> None:
    schema = {"items": {"type": "object", "required": ["a"], "properties": {"a": {"minimum": 1}}}}
    value = [{"a": 1}] * 5000 + [{"a": 0}]
    assert told(schema, value) == [("/5000/a", "0", "at least 1")]


def test_each_of_many_properties_is_looked_at() -> None:
    kinds = {f"p{n}": {"anyOf": [{"type": "null"}, {"maximum": n}]} for n in range(60)}
    wide = {"properties": {**kinds, "last": {"type": "string"}}}
    value = {f"p{n}": n for n in range(60)}
    assert told(wide, {**value, "last": 1}) == [("/last", "1", "type string")]
    plain = {"properties": {f"p{n}": {"maximum": n} for n in range(60)}}
    assert told(plain, {**value, "p59": 60}) == [("/p59", "60", "at most 59")]


def test_what_is_found_is_told_though_not_everything_can_be_looked_at() -> None:
    kinds = {f"p{n}": {"if": {"$ref": "#/$defs/d"}, "then": {"maximum": n}} for n in range(99)}
    schema = {"properties": {"a": {"type": "string"}, **kinds}, "$defs": {"d": {"minimum": 1}}}
    assert told(schema, {"a": 1, **{f"p{n}": n for n in range(99)}}) == [("/a", "1", "type string")]


def test_names_of_properties_that_look_like_keywords() -> None:
    schema = {
        "properties": {"$id": {"type": "string"}, "$ref": {"type": "string"}},
        "additionalProperties": False,
    }
    assert Schemas().checker(schema).fits({"$id": "a", "$ref": "b"})
    assert told(schema, {"$id": 1, "$ref": "b"}) == [("/$id", "1", "type string")]
    assert told({"const": {"$ref": "#"}}, 1) == [("", "1", 'exactly {"$ref":"#"}')]


def test_unions_of_plain_types_and_several_that_fit() -> None:
    optional = {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
    assert told(optional, {"a": 3}) == [("/a", "3", "type string")]
    both = {"oneOf": [{"type": "integer"}, {"minimum": 2}]}
    assert told(both, 3) == [("", "3", "exactly one of 2 alternatives to fit")]


def test_what_can_t_be_explained_is_still_refused() -> None:
    schema = {
        "$defs": {"a": {"$dynamicAnchor": "t", "type": "string"}},
        "properties": {"x": {"anyOf": [{"$dynamicRef": "#t"}, {"type": "null"}]}},
    }
    assert Schemas().checker(schema).fits({"x": "a"})
    assert told(schema, {"x": 3})


def test_the_words_are_bounded() -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    violations = Schemas().checker(schema).violations([["x" * 10_000]] * 100)
    assert len(violations) == 10
    assert all(len(str(violation)) < 600 for violation in violations)
