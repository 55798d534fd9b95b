"""Requests with holes: arguments stay data, wherever they go."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.tools.http.template import (
    BadArgument,
    BadTemplate,
    body_template,
    fill_header,
    pieces,
    url_template,
)

BASE = "https://crm.example.com"


@pytest.mark.parametrize(
    ("template", "arguments", "url"),
    [
        ("/c/{n}", {"n": "17"}, "/c/17"),
        ("/c/{n}", {"n": 17}, "/c/17"),
        ("/c/{n}", {"n": True}, "/c/true"),
        ("/c/{n}.json", {"n": ".."}, "/c/...json"),
        ("/c/{n}", {"n": "a/b?c#d&e=f %2e"}, "/c/a%2Fb%3Fc%23d%26e%3Df%20%252e"),
        ("/c/{n}", {"n": "Ü☃"}, "/c/%C3%9C%E2%98%83"),
        ("/c/{a}-{b}/x", {"a": "1", "b": "2"}, "/c/1-2/x"),
        ("/c?q={q}", {"q": "a&b=c"}, "/c?q=a%26b%3Dc"),
        ("/c?q={q}&fixed=1", {}, "/c?fixed=1"),
        ("/c?q={q}", {"q": None}, "/c"),
        ("/c?q={q}", {"q": ""}, "/c?q="),
        ("/c?q={q}", {"q": 0}, "/c?q=0"),
        ("/c?q={q}", {"q": [1, "b"]}, "/c?q=1&q=b"),
        ("/c?q={q}", {"q": []}, "/c"),
        ("/c?q={q}", {"q": {"a": 1}}, "/c?q=%7B%22a%22%3A%201%7D"),
        ("/c?q=name:{q}", {"q": "x y"}, "/c?q=name:x%20y"),
        ("/c?flag&q={q}", {"q": "1"}, "/c?flag&q=1"),
        ("/{{plain}}/{n}", {"n": "1"}, "/{plain}/1"),
        ("", {}, ""),
        ("/", {}, "/"),
        ("?q={q}", {"q": "1"}, "?q=1"),
    ],
)
def test_urls_are_filled(template: str, arguments: dict[str, Any], url: str) -> None:
    assert url_template(BASE + template).fill(arguments) == BASE + url


@pytest.mark.parametrize("value", ["", ".", "..", None, [1], {"a": 1}, "\ud800"])
def test_a_segment_that_would_lead_elsewhere_is_refused(value: Any) -> None:
    with pytest.raises(BadArgument, match="n"):
        url_template(BASE + "/c/{n}/d").fill({"n": value})


def test_a_missing_segment_is_refused() -> None:
    with pytest.raises(BadArgument, match="n is missing"):
        url_template(BASE + "/c/{n}").fill({})


@pytest.mark.parametrize(
    "template",
    [
        "https://{host}/",
        "https://{sub}.example.com/",
        "https://example.com:{port}/",
        "https://user:{pw}@example.com/",
        "{scheme}://example.com/",
        "{url}",
        "ftp://example.com/",
        "https://example.com/#{x}",
        "https://example.com/a b",
        "https://example.com/ü",
        "https://example.com/{",
        "https://example.com/}",
        "https://example.com/{}",
        "https://example.com/{a b}",
        "https://example.com/?{name}=1",
    ],
)
def test_templates_that_say_too_much_are_refused(template: str) -> None:
    with pytest.raises(BadTemplate):
        url_template(template)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.text(st.characters(exclude_categories=["Cs"])),
)
def test_an_argument_never_leaves_its_place(segment: str, value: str) -> None:
    template = url_template(BASE + "/a/{segment}/b?first={value}&last=1")
    try:
        url = template.fill({"segment": segment, "value": value})
    except BadArgument:
        assert segment in (".", "..")
        return
    parts = urlsplit(url)
    assert parts.netloc == "crm.example.com"
    assert [unquote(part) for part in parts.path.split("/")] == ["", "a", segment, "b"]
    query = parse_qsl(parts.query, keep_blank_values=True)
    assert query == [("first", value), ("last", "1")]


def test_headers_are_filled_or_left_out() -> None:
    assert fill_header(pieces("Token {t}"), {"t": "abc"}) == "Token abc"
    assert fill_header(pieces("plain"), {}) == "plain"
    assert fill_header(pieces("{n}"), {"n": 5}) == "5"
    assert fill_header(pieces("{n}"), {}) is None


@pytest.mark.parametrize("value", ["a\r\nX: 1", "a\nb", "a\0", "ü", "\x7f"])
def test_a_header_can_t_be_ended_by_an_argument(value: str) -> None:
    with pytest.raises(BadArgument):
        fill_header(pieces("v={v}"), {"v": value})


@pytest.mark.parametrize(
    ("shape", "arguments", "body"),
    [
        ({"n": "{n}"}, {"n": 5}, {"n": 5}),
        ({"n": "{n}"}, {"n": None}, {"n": None}),
        ({"n": "{n}", "k": 1}, {}, {"k": 1}),
        ({"n": "no {n}!"}, {"n": 5}, {"n": "no 5!"}),
        ({"n": "no {n}!"}, {}, {"n": "no !"}),
        ({"a": {"b": ["{x}", "{y}", "z"]}}, {"y": [1]}, {"a": {"b": [[1], "z"]}}),
        ({"n": "{{n}}"}, {"n": 5}, {"n": "{n}"}),
        ("{all}", {"all": {"x": '"'}}, {"x": '"'}),
        ("{all}", {}, None),
        ({"rate": Decimal("0.5"), "on": True}, {}, {"rate": Decimal("0.5"), "on": True}),
        ([], {}, []),
    ],
)
def test_bodies_are_filled(shape: Any, arguments: dict[str, Any], body: Any) -> None:
    assert body_template(shape).fill(arguments) == body


@pytest.mark.parametrize("shape", ['{{"q": "{q}"}}', "plain", "a {b}", {"a": "{"}, ""])
def test_a_body_of_loose_text_is_refused(shape: Any) -> None:
    with pytest.raises(BadTemplate):
        body_template(shape)


def test_the_names_that_a_template_takes() -> None:
    assert url_template(BASE + "/{a}/x{b}?c={c}&d=1").names == {"a", "b", "c"}
    assert url_template(BASE).names == set()
    assert body_template({"x": ["{a}", {"y": "{b}!"}], "z": 1}).names == {"a", "b"}
