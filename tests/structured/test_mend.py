"""What is mended, what is not, and that nothing inside of a string ever changes."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.structured.mend import MAX_CHARACTERS, Mended, Unparsable, mend

GOOD = '{"name":"Ana","ok":true,"items":["leek","carrot"],"n":1.50,"x":null}'

MENDED = {
    "fence": (f"```json\n{GOOD}\n```", ["fence", "fence"]),
    "fence without an end": (f"```\n{GOOD}", ["fence"]),
    "prose": (f"Sure, here it is:\n{GOOD}\nAnything else?", ["prose", "prose"]),
    "prose with braces": (f"Here you are: {GOOD} Hope it helps {{x}}", ["prose", "prose"]),
    "prose and fence": (f"Sure:\n```json\n{GOOD}\n```\nDone [1].", ["fence", "fence"]),
    "a reference": (f"As in [1]: {GOOD}", ["prose"]),
    "thinking": (f'<think>Perhaps {{"a": 1}}?</think>{GOOD}', ["thinking"]),
    "thinking, opened in the prompt": (f"I take {{1}}.</think>\n\n{GOOD}", ["thinking"]),
    "thinking twice": (f"<think>a</think> <think>b</think>{GOOD}", ["thinking"]),
    "stray closing tag": (f"{GOOD}</answer>", ["markup"]),
    "tags around": (f"<json>{GOOD}</json>", ["markup", "markup"]),
    "end mark": (f"{GOOD}<|im_end|>", ["markup"]),
    "stray bracket": (GOOD + "}", ["stray_bracket"]),
    "trailing comma": (GOOD[:-1] + ",}", ["trailing_comma"]),
    "comment before": (f"// the answer\n{GOOD}", ["comment"]),
    "comment within": (GOOD.replace("1.50,", "1.50,/* why */"), ["comment"]),
    "python's words": (
        GOOD.replace("true", "True").replace("null", "None"),
        ["python_literal", "python_literal"],
    ),
    "not a number": (GOOD.replace("null", "NaN"), ["nan"]),
    "bare key": (GOOD.replace('"name"', "name"), ["bare_key"]),
    "typographic quotes": (GOOD.replace('"name"', "“name”"), ["smart_quotes"]),
    "single quotes": (GOOD.replace('"Ana"', "'Ana'"), ["single_quotes"]),
    "forgotten bracket": (GOOD[:-1], ["missing_bracket"]),
    "forgotten bracket in a fence": (
        f"```json\n{GOOD[:-1]}```",
        ["fence", "missing_bracket", "fence"],
    ),
}


@pytest.mark.parametrize("dirty", MENDED)
def test_mended_to_the_byte(dirty: str) -> None:
    text, kinds = MENDED[dirty]
    mended = mend(text)
    assert mended.text == GOOD
    assert [change.kind for change in mended.changes] == kinds


SPACED = {
    '{"a": "x" "b": 1}': '{"a": "x" ,"b": 1}',
    '{"a": 1\n"b": 2}': '{"a": 1\n,"b": 2}',
    '["a" "b"]': '["a" ,"b"]',
    '[{"a": 1} {"a": 2}]': '[{"a": 1} ,{"a": 2}]',
    "{'a': 'say \"x\"'}": r'{"a": "say \"x\""}',
    r"{'a': 'it\'s'}": '{"a": "it\'s"}',
    '{"a": "one\ntwo"}': r'{"a": "one\ntwo"}',
    '{"a":\u00a01}': '{"a": 1}',
    "{1: 'a'}": '{"1": "a"}',
    r'{"a":"\u0041\ud83d\ude42",}': r'{"a":"\u0041\ud83d\ude42"}',
    '{"a": [1, 2\n': '{"a": [1, 2\n]}',
}


@pytest.mark.parametrize("text", SPACED)
def test_mended_with_more_to_it(text: str) -> None:
    assert mend(text).text == SPACED[text]


AMBIGUOUS = {
    "two documents": '{"a":1}{"a":2}',
    "two lists": '["a"] ["b"]',
    "a document and a list": '{"a": 1} [{"b": 2}]',
    "one whole and one cut": '{"a":1} {"a":',
    "a quote inside a string": '{"key": ["samsung 32" display"]}',
    "quotes around a word": '{"a": "he said "no" to it"}',
    "quotes in a list": '["a "b" c"]',
    "apostrophe": "{'a': 'it's'}",
    "missing value": '{"a": , "b": 1}',
    "missing item": "[1,,2]",
    "undefined": '{"a": undefined}',
    "infinity": '{"a": Infinity}',
    "a bare word": '{"a": yes}',
    "two numbers": "[1 2]",
    "a thousand": '{"a": 1 000}',
    "an odd number": '{"a": 0x1F}',
    "cut in a string": '{"a": "lee',
    "cut after a colon": '{"a":',
    "cut after a comma": '{"a": 1,',
    "cut in a number": '{"a": [1, 2',
    "brackets that cross": '{"a": [1}',
    "part of something larger": '{"a": oops, "b": {"c": 1}}',
    "part of a list": '[oops, {"c": 1}]',
    "more behind it": '{"a": 1}, "b": 2}',
    "thinking that does not end": '<think>{"a": 1}',
    "nothing": "",
    "prose alone": "I can't do that.",
    "an unknown escape": r'{"a": "\d", }',
    "beside one that can't be read": r"""{'b': '\x1f'} {"a": 1}""",
    "before one that can't be read": r"""{"a": 1} or {'b': '\x1f'}""",
    "within a list that can't be read": r"""[{']': '\x1f'}, []]""",
    "before a bare one that can't be read": '{"a": 1} {b: undefined}',
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_never_a_guess(name: str) -> None:
    with pytest.raises(Unparsable):
        mend(AMBIGUOUS[name])


def test_brackets_are_closed_only_behind_a_true_end() -> None:
    text = '{"name":"Ana","items":["leek","carrot"'
    assert mend(text).text == text + "]}"
    with pytest.raises(Unparsable):
        mend(text, ended=False)


def test_changes_tell_before_and_after_within_bounds() -> None:
    mended = mend("x" * 500 + " {'a': True}")
    assert [str(change) for change in mended.changes[1:]] == [
        '''single_quotes@502 "'a'" -> "\\"a\\""''',
        'python_literal@507 "True" -> "true"',
    ]
    assert len(mended.changes[0].before) == 60
    quoted = str(mend("{“é”: 1}").changes[0])
    assert quoted == 'smart_quotes@1 "\\u201c\\u00e9\\u201d" -> "\\"\\u00e9\\""'


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
VALUE = st.dictionaries(st.text(), JSON, max_size=4) | st.lists(JSON, max_size=4)


@given(JSON, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_what_parses_is_not_touched(value: object, indent: object, ascii_only: bool) -> None:
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
        text.encode()
    except UnicodeEncodeError:
        return
    if ascii_only and "\\ud" in text:
        return  # a lone surrogate is no text
    assert mend(text) == Mended(text)


@given(VALUE, st.sampled_from(["fence", "prose", "trailing", "comment", "tag"]))
def test_what_is_dressed_up_is_found_again(value: object, dress: str) -> None:
    text = json.dumps(value, ensure_ascii=True)
    if "\\ud" in text:
        return
    dressed = {
        "fence": f"```json\n{text}\n```",
        "prose": f"Here:\n{text}\nThat is all.",
        "trailing": text if text in ("{}", "[]") else f"{text[:-1]},{text[-1]}",
        "comment": f"// so\n{text}",
        "tag": f"{text}</output>",
    }[dress]
    assert mend(dressed).text == text


@given(VALUE, st.data(), st.sampled_from(["", "```json\n", "So: ", "<think>a</think>"]))
def test_what_was_cut_is_never_completed(value: object, data: st.DataObject, dress: str) -> None:
    text = json.dumps(value)
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(Unparsable):
        mend(dress + text[:cut], ended=False)


@given(VALUE, st.data())
def test_at_a_true_end_nothing_but_brackets_is_added(value: object, data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    try:
        mended = mend(cut)
    except Unparsable:
        return
    assert mended.text.startswith(cut)
    assert set(mended.text.removeprefix(cut)) <= set("]}")


@given(st.text(alphabet="{}[]\",:'“” \\ntrueNa1/*#`<think>-.", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        mended = mend(text)
    except Unparsable:
        return
    json.loads(mended.text)
    if not mended.changes:
        assert mended.text == text


ODD = st.text("ab'\"“x:,{}[] \x1f\\")
ODDITIES = st.recursive(
    ODD | st.none() | st.integers(-9, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(ODD, ODDITIES, min_size=1, max_size=3) | st.lists(ODDITIES, max_size=3))
def test_strings_survive_pythons_own_way_of_writing(value: object) -> None:
    """``repr`` of a dict is what a careless program prints: read aright or not at all."""
    try:
        mended = mend(repr(value))
    except Unparsable:
        return
    assert json.loads(mended.text) == value


MEGABYTE = 1_000_000
HOSTILE = {
    "braces": "{ {",
    "brackets": "[",
    "keys": '{"a":',
    "quotes": "{'",
    "quotes and spaces": "['a' ",
    "comments": "{/*",
    "line comments": "{//\n",
    "thoughts": "<think></think>",
    "tags": "<a ",
    "fences": "```json\n",
    "values": '{"a":1,} ',
    "commas": '{"a":1,},',
    "escapes": "{'\\'",
    "controls": '{"a":"\n',
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("size", [MAX_CHARACTERS, MEGABYTE], ids=["longest", "too long"])
def test_hostile_texts_are_read_in_linear_time(name: str, size: int) -> None:
    piece = HOSTILE[name]
    text = piece * (size // len(piece))
    started = time.process_time()
    for whole in (text, text + '{"a": 1,}', '{"a": 1,}' + text):
        try:
            mend(whole)
        except Unparsable:
            continue
    assert time.process_time() - started < 5
