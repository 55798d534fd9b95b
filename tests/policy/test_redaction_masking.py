"""Placeholders: one for each value, none that the caller could have written, none in a repr."""

from __future__ import annotations

import json

import pytest

from gateway.policy.redaction import json_text
from gateway.policy.redaction.masking import Masking, Piece
from gateway.policy.redaction.restore import Restorer
from gateway.policy.redaction.scan import Scanner

SCANNER = Scanner()


def masking(*, reversible: bool = True) -> Masking:
    return Masking(SCANNER, reversible=reversible)


def test_the_same_value_has_the_same_placeholder() -> None:
    one = masking()
    texts = one.texts(
        [Piece("ask bob@acme.com or amy@acme.com"), Piece("bob@acme.com is away, 10.0.0.1 is not")]
    )
    assert texts == ["ask <EMAIL_1> or <EMAIL_2>", "<EMAIL_1> is away, <IP_1> is not"]
    assert one.originals["<EMAIL_2>"] == "amy@acme.com"
    assert one.ledger() == {"redacted_email": 3, "redacted_ip": 1}


def test_what_the_caller_wrote_in_our_form_comes_back_as_written() -> None:
    one = masking()
    (text,) = one.texts([Piece("literally <EMAIL_1>, and bob@acme.com")])
    assert "acme" not in text
    assert "<EMAIL_1>" in text
    assert text.count("<TEXT_1>") == 1
    assert Restorer(one.originals).whole(text) == "literally <EMAIL_1>, and bob@acme.com"
    assert one.ledger() == {"redacted_email": 1}


def test_placeholders_of_an_earlier_answer_stay_under_mask() -> None:
    """What was masked is not put back, so the conversation itself holds placeholders."""
    texts = masking(reversible=False).texts([Piece("bob@acme.com"), Piece("I wrote to <EMAIL_1>.")])
    assert texts == ["<EMAIL_1>", "I wrote to <EMAIL_1>."]


def test_a_repr_shows_no_value() -> None:
    one = masking()
    one.texts([Piece("bob@acme.com")])
    assert "bob" not in repr(one)
    assert not hasattr(one, "__dict__")


def test_values_that_came_back_are_masked_again_without_their_words() -> None:
    one = masking()
    assert one.texts([Piece("call 5551234567")]) == ["call <PHONE_1>"]
    assert one.again('{"number": "5551234567", "to": "amy@acme.com"}') == (
        '{"number": "<PHONE_1>", "to": "<EMAIL_1>"}'
    )


def test_a_value_never_reaches_into_the_next_text() -> None:
    one = masking()
    key = "-----BEGIN PRIVATE KEY-----\nMIIE"
    assert one.texts([Piece(key), Piece("untouched words")]) == ["<SECRET_1>", "untouched words"]


# ------------------------------------------------------------------ JSON text


def changed(raw: str) -> str:
    one = masking()
    return json_text.changed(raw, lambda text: one.texts([Piece(text)])[0])


def test_escapes_hide_nothing() -> None:
    assert changed(r'{"to": "bob\u0040acme.com"}') == '{"to": "<EMAIL_1>"}'
    assert changed(r'{"t": "line\n13812345678"}') == r'{"t": "line\n<PHONE_1>"}'


def test_bytes_that_hold_nothing_are_kept() -> None:
    raw = '{ "a" :1.50, "b":"caf\\u00e9 \\/ \\"x\\"",\n\t"c":[ true,null ] }'
    assert changed(raw) == raw


def test_a_number_becomes_a_string() -> None:
    new = changed('{"card": 4111111111111111, "n": 12}')
    assert json.loads(new) == {"card": "<CARD_1>", "n": 12}


@pytest.mark.parametrize(
    "raw", ['{"to": "bob@acme.com', "send to bob@acme.com please", '{"to": "x"} bob@acme.com']
)
def test_broken_json_hides_nothing(raw: str) -> None:
    assert "bob" not in changed(raw)


@pytest.mark.parametrize("unit", ['"', '\\"', "{", '"a', "1", "\\", '":'])
def test_broken_json_is_read_in_linear_time(unit: str) -> None:
    json_text.changed('"' + unit * 100_000, lambda text: text)
