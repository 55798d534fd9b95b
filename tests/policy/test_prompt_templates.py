"""Templates in their sandbox: what works, what is refused when read, what fails when rendered."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest

from gateway.policy.prompts.rendering import Limits, RenderingFailed, TemplateRefused
from gateway.policy.prompts.template import Template


def rendered(source: str, limits: Limits | None = None, **values: Any) -> str:
    return Template(source).render(values, limits if limits is not None else Limits())


def test_values_are_data_and_never_rendered() -> None:
    value = "{{ 7 * 7 }}{% for x in y %}{# #}"
    assert rendered("Say {{ x }}", x=value) == f"Say {value}"
    assert rendered("{% if x %}{{ x|upper }}{% endif %}", x="{{x}}") == "{{X}}"


def test_what_the_language_has() -> None:
    assert rendered(
        "{% for o in xs %}{{ loop.index }}. {{ o.n }}\n{% endfor %}", xs=[{"n": 1}]
    ) == ("1. 1\n")
    assert rendered("{{ xs|map(attribute='n')|join(', ') }}", xs=[{"n": "a"}, {"n": "b"}]) == "a, b"
    assert rendered("{{ x|tojson }}", x={"a": ["é<"]}) == '{"a":["é<"]}'
    assert rendered("{{ xs[1:]|length }}{{ xs[0] }}", xs=["a", "b"]) == "1a"
    assert rendered("{% set n = a + b %}{{ n * 2 }}", a=1, b=2) == "6"
    assert rendered("{{ x.missing is defined }}", x={}) == "False"


ESCAPES = [
    "{{ x.__class__ }}",
    "{{ x._private }}",
    "{{ ''.join(x) }}",
    "{{ x|attr('upper') }}",
    "{{ x.upper() }}",
    "{{ range(9) }}",
    "{{ self }}",
    "{{ x ~ x }}",
    "{{ 2 ** 9 }}",
    "{% include 'x' %}",
    "{% import 'x' as y %}",
    "{% extends 'x' %}",
    "{% macro f() %}{% endmacro %}",
    "{% call f() %}{% endcall %}",
    "{% block b %}{% endblock %}",
    "{% set x %}text{% endset %}",
    "{% filter upper %}x{% endfilter %}",
    "{{ x|pprint }}",
    "{{ x|format(1) }}",
    "{{ x|center(99) }}",
    "{{ x is sameas x }}",
    "{{ x",
    "{% if x %}",
    "{{ " + "(" * 900 + "1" + ")" * 900 + " }}",
]


@pytest.mark.parametrize("source", ESCAPES)
def test_refused_when_it_is_read(source: str) -> None:
    with pytest.raises(TemplateRefused):
        Template(source)


LARGE = {
    "nested": "{% for a in x %}" * 200 + "{% endfor %}" * 200,
    "expressions": "{{ x }}" * 28_000,
    "a list": "{{ [" + "1," * 60_000 + "] }}",
    "assignments": "{% set a = x %}" * 12_000,
    "an expression": "{{ " + "(" * 900 + "x" + ")" * 900 + " }}",
}


@pytest.mark.parametrize("name", LARGE)
def test_what_would_take_long_to_read_is_refused(name: str) -> None:
    started = time.process_time()
    with pytest.raises(TemplateRefused):
        Template(LARGE[name])
    assert time.process_time() - started < 10


def test_a_long_text_is_no_long_template() -> None:
    assert len(rendered("{{ x }} and so on\n" * 500 + "a" * 100_000, x="b")) > 100_000


def test_arrays_and_objects_are_json() -> None:
    value = {"xs": ["a", None, True, 1.5], "é": {}}
    assert rendered("{{ x }} {{ x.xs }}", x=value) == (
        '{"xs":["a",null,true,1.5],"é":{}} ["a",null,true,1.5]'
    )


def test_a_refusal_tells_the_line() -> None:
    with pytest.raises(TemplateRefused, match="line 3"):
        Template("one\ntwo\n{{ x() }}")


FAILS: dict[str, dict[str, Any]] = {
    "{{ missing }}": {},
    "{{ x.missing }}": {"x": {}},
    "{{ x['__class__'] }}": {"x": "s"},
    "{{ x.real }}": {"x": 1},
    "{{ x.append }}": {"x": []},
    "{{ x|map(attribute='__class__')|join }}": {"x": ["s"]},
    "{{ x * 99999999 }}": {"x": "s"},
    "{{ x % 1 }}": {"x": "%999999999d"},
    "{{ 1 / x }}": {"x": 0},
    "{{ x + 1 }}": {"x": "s"},
    "{{ x|map(attribute='__class__')|list }}": {"x": ["s"]},
    "{{ [x.missing] }}": {"x": {}},
    "{{ x|select }}": {"x": ["s"]},
    "{{ loop }}": {"loop": object()},
    "{% set a = x %}" + "{% set a = a * a %}" * 60 + "{{ a }}": {"x": 10**9},
}


@pytest.mark.parametrize(("source", "values"), FAILS.items())
def test_fails_when_it_is_rendered(source: str, values: dict[str, Any]) -> None:
    with pytest.raises(RenderingFailed):
        rendered(source, **values)


GROWS: dict[str, dict[str, Any]] = {
    "{{ x }}{{ x }}": {"x": "a" * 600},
    "{{ x + x }}": {"x": "a" * 600},
    "{{ x|replace('a', x) }}": {"x": "a" * 600},
    "{{ xs|join(x) }}": {"xs": ["b"] * 10, "x": "a" * 600},
    "{% for c in x %}{{ x }}{% endfor %}": {"x": "a" * 600},
    "{% set a = x + x %}{% set b = a + a %}{% set c = b + b %}": {"x": "a" * 400},
}


@pytest.mark.parametrize(("source", "values"), GROWS.items())
def test_size_is_capped_while_it_is_made(source: str, values: dict[str, Any]) -> None:
    with pytest.raises(RenderingFailed, match="max_bytes"):
        rendered(source, Limits(max_bytes=1000), **values)


def test_time_is_capped_in_loops_that_say_nothing() -> None:
    loops = "{% for a in x %}{% for b in x %}{% for c in x %}{% endfor %}{% endfor %}{% endfor %}"
    started = time.monotonic()
    with pytest.raises(RenderingFailed, match="max_seconds"):
        rendered(loops, Limits(seconds=0.1), x=list(range(5000)))
    assert time.monotonic() - started < 5


def test_what_it_needs_is_known_before() -> None:
    template = Template("{{ a.b }}{% for c in d %}{{ c }}{{ e|default('x') }}{% endfor %}")
    assert template.variables == {"a", "d", "e"}
    assert template.loops
    assert not Template("{{ a }}").loops


def test_texts_of_values_are_wrapped_where_that_is_wanted() -> None:
    template = Template(
        "{% if x == 'a' %}{{ x }}{{ n }}{% endif %}{% for y in ys %}{{ y }}{% endfor %}"
    )
    text = template.render({"x": "a", "n": 1, "ys": ["b"]}, Limits(), lambda t: f"[{t}]")
    assert text == "[a]1[b]"
    whole = Template("{{ ys }}").render({"ys": ["b"]}, Limits(), lambda t: f"<{t}>")
    assert whole == '<["b"]>'


def test_serving_without_prompts_never_loads_jinja() -> None:
    code = (
        "import sys, gateway.app;"
        "print([m for m in 'jinja2 mcp openai anthropic opentelemetry.sdk'.split()"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
