"""What is copied to the wire, and what unset means there."""

from __future__ import annotations

from types import SimpleNamespace

from adapters.wire.copied import Copied


def test_what_is_set_is_copied_in_order_and_nothing_else() -> None:
    body: dict[str, object] = {"model": "m"}
    source = SimpleNamespace(a=None, b=(), c=0, d="", e={}, f=("x",), g=False)
    Copied(G="g", A="a", B="b", C="c", D="d", E="e", F="f").put(source, body)
    assert list(body.items()) == [
        ("model", "m"),
        ("G", False),
        ("C", 0),
        ("D", ""),
        ("E", {}),
        ("F", ("x",)),
    ]


def test_where_nothing_is_set_the_body_stays_what_it_is() -> None:
    body: dict[str, object] = {"model": "m"}
    Copied(A="a", B="b", C="c").put(SimpleNamespace(a=None, b=(), c=None), body)
    assert body == {"model": "m"}
