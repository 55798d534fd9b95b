"""Output that is too long keeps its head and its tail."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapters.canonical.parts import Inline, Media, Text
from gateway.tools.base import ToolOutcome
from gateway.tools.caps import capped, capped_outcome


@given(st.text(max_size=400), st.integers(0, 300))
def test_never_longer_and_untouched_if_it_fits(text: str, cap: int) -> None:
    once = capped(text, cap)
    assert len(once) <= cap
    assert capped(once, cap) == once
    if len(text) <= cap:
        assert once is text


def test_head_and_tail_are_kept_and_the_cut_is_marked() -> None:
    text = "HEAD" + "x" * 1000 + "TAIL"
    short = capped(text, 300)
    assert short.startswith("HEADxxx")
    assert short.endswith("xxxTAIL")
    assert "were cut here" in short


def test_the_parts_of_an_outcome_share_one_cap() -> None:
    picture = Media("image", Inline("image/png", "A" * 500))
    whole = ToolOutcome((Text("a" * 60), picture, Text("b" * 200), Text("c")), is_error=True)
    short = capped_outcome(whole, 100)
    texts = [part.text for part in short.content if isinstance(part, Text)]
    assert texts[0] == "a" * 60
    assert sum(map(len, texts)) <= 100
    assert picture in short.content
    assert short.is_error
    assert capped_outcome(whole, 1000) == whole
