"""Values put back, for every way in which the text around them can be cut."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

from gateway.policy.redaction.restore import Restorer

KEY = '-----BEGIN "X"-----\nMII\\E\n'
ORIGINALS = {"<EMAIL_1>": "bob@acme.com", "<EMAIL_12>": "amy@b.org", "<SECRET_1>": KEY}
RESTORER = Restorer(ORIGINALS)


def streamed(pieces: list[str], *, json: bool = False) -> tuple[str, int]:
    """What comes out of ``pieces``, and the longest that was held back meanwhile."""
    out, held, longest = "", "", 0
    for piece in pieces:
        sure, held = RESTORER.split(held + piece, json=json)
        out += sure
        longest = max(longest, len(held))
    return out + RESTORER.rest(held, json=json), longest


VECTORS = {
    "Write to <EMAIL_1> or <EMAIL_12>.": "Write to bob@acme.com or amy@b.org.",
    "<EMAIL_1><EMAIL_1>": "bob@acme.combob@acme.com",
    "<<EMAIL_1>>": "<bob@acme.com>",
    "<EMAIL_3> and <EMAIL_1": "<EMAIL_3> and <EMAIL_1",
    "a < b, <EMAIL_ 1>, <e>": "a < b, <EMAIL_ 1>, <e>",
    "<SECRET_1>": KEY,
}


@pytest.mark.parametrize(("text", "wanted"), VECTORS.items())
def test_every_cut_gives_the_whole(text: str, wanted: str) -> None:
    assert RESTORER.whole(text) == wanted
    for first, second in combinations(range(len(text) + 1), 2):
        out, longest = streamed([text[:first], text[first:second], text[second:]])
        assert out == wanted
        assert longest <= len("<EMAIL_12>")
    assert streamed(list(text))[0] == wanted


JSON_VECTORS = [
    '{"to": "<EMAIL_1>", "key": "<SECRET_1>"}',
    '{"to": "\\u003cEMAIL_1\\u003e", "key": "\\u003CSECRET_1\\u003E"}',
    '{"to": "<EMAIL_1\\u003e", "n": "\\u0030 \\\\ \\n", "key": "\\u003cSECRET_1>"}',
]


@pytest.mark.parametrize("raw", JSON_VECTORS)
def test_values_are_escaped_as_json_needs_it_at_every_cut(raw: str) -> None:
    whole, _ = streamed([raw], json=True)
    values = json.loads(whole)
    assert (values["to"], values["key"]) == ("bob@acme.com", KEY)
    for first, second in combinations(range(len(raw) + 1), 2):
        pieces = [raw[:first], raw[first:second], raw[second:]]
        assert streamed(pieces, json=True)[0] == whole
    assert streamed(list(raw), json=True)[0] == whole


def test_nothing_endless_is_held_back() -> None:
    out, longest = streamed(["<" + "A" * 50] * 200)
    assert out == ("<" + "A" * 50) * 200
    assert longest < 50
