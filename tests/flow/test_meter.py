"""What the books know of an answer does not depend on how it came."""

from __future__ import annotations

import itertools

import pytest

from adapters.canonical.completion import Completion, unfold
from adapters.canonical.events import Finished, Usage
from adapters.canonical.parts import Text
from gateway.flow.meter import Meter

ANSWER = Completion(
    "r1", "m", 7, (Text("Grüße"),), (0,), usage=Usage(3, output=2), terminal=Finished("stop")
)


@pytest.mark.parametrize("whole", [True, False])
def test_an_answer_in_one_step_is_counted_as_its_events_are(whole: bool) -> None:
    meter, begun = Meter(itertools.count(5.0).__next__), []
    meter.on_first_content = lambda: begun.append(True)
    if whole:
        meter.take(ANSWER)
    else:
        meter.feed(list(unfold(ANSWER)))
    assert (meter.model, meter.usage, meter.terminal) == ("m", ANSWER.usage, ANSWER.terminal)
    assert (meter.output_bytes, meter.first_content, begun) == (7, 5.0, [True])
