"""Golden cases of this project's own: wire bytes and the events that they mean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapters.canonical import grammar
from adapters.canonical.completion import fold
from adapters.dialects.anthropic_messages import DIALECT

GOLDEN = Path(__file__).parents[2] / "golden" / "anthropic_messages"
CASES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
STREAMS = [name for name in CASES if (GOLDEN / name / "wire.sse").exists()]


def _events(case: Path, decode):
    stream = case / "wire.sse"
    if stream.exists():
        return decode([stream.read_bytes()])
    return DIALECT.decoder().body((case / "wire.json").read_bytes())


@pytest.mark.parametrize("name", CASES)
def test_the_wire_means_the_events(name, golden, decode, plain):
    events = _events(golden / name, decode)
    grammar.check(events)
    assert plain(events) == json.loads((golden / name / "events.json").read_text())


@pytest.mark.parametrize("name", STREAMS)
def test_every_cut_of_the_bytes_gives_the_same_events(name, golden, decode, plain):
    data = (golden / name / "wire.sse").read_bytes()
    whole = plain(decode([data]))
    for cut in range(1, len(data)):
        assert plain(decode([data[:cut], data[cut:]])) == whole, cut
    assert plain(decode([data[n : n + 1] for n in range(len(data))])) == whole


@pytest.mark.parametrize("name", STREAMS)
def test_an_end_of_file_before_the_terminal_is_never_success(name, golden, decode, fault_of):
    data = (golden / name / "wire.sse").read_bytes().removesuffix(b"\n")
    proven = b'"type":"message_stop"' in data or b'"type":"error"' in data
    for cut in (*range(0, len(data), 7), len(data) if proven else len(data) - 1):
        assert fault_of(decode([data[:cut]])).kind == "stream_truncated"


@pytest.mark.parametrize("name", CASES)
def test_verbatim_carries_the_frames_and_changes_no_event(name, golden, decode, plain):
    stream = golden / name / "wire.sse"
    if stream.exists():
        told = decode([stream.read_bytes()], verbatim=True)
    else:
        told = DIALECT.decoder(verbatim=True).body((golden / name / "wire.json").read_bytes())
    frames = [event for event in told if type(event).__name__ == "Verbatim"]
    assert [json.loads(frame.data) for frame in frames] == [frame.json for frame in frames]
    assert "ping" not in {frame.name for frame in frames}
    rest = [event for event in told if event not in frames]
    assert plain(rest) == json.loads((golden / name / "events.json").read_text())


def test_folding_a_golden_stream_gives_whole_parts(golden, decode):
    completion = fold(decode([(golden / "server-tools-and-citations" / "wire.sse").read_bytes()]))
    search, found, text, compaction, hologram = completion.parts
    assert search.data["input"] == {"query": "rain"}
    assert found.data["content"][0]["encrypted_content"] == "c2VhbGVk"
    assert (text.text, text.citations[0]["cited_text"]) == ("It did.", "It rained.")
    assert compaction.data == {
        "type": "compaction",
        "content": "A short past.",
        "encrypted_content": "cGFzdA==",
    }
    assert hologram.data == {"type": "hologram", "depth": 3}
    assert [event.name for event in completion.opaque] == ["brand_new_event"]
