"""One JSON body for an answer that is not streamed: the same items, told at once.

Same dialect in and out: the provider's own object with only the owned fields replaced.
"""

from __future__ import annotations

from adapters.canonical.completion import Completion, unfold
from adapters.canonical.events import Finished, Started, UsageReported
from adapters.wire.json import dumps
from adapters.wire.openai_responses import DIALECT
from gateway.northbound.base import Envelope
from gateway.northbound.openai_responses.output import Output
from gateway.northbound.openai_responses.relay import owned
from gateway.northbound.openai_responses.resource import Answer, ending
from gateway.northbound.openai_responses.stream import learn, mark_of


def whole(completion: Completion, envelope: Envelope) -> bytes:
    """The body of a ``response``."""
    relayed = completion.verbatim
    if relayed is not None and relayed.dialect == DIALECT:
        return dumps({**relayed.json, **owned(relayed.json, envelope)})
    answer, output = Answer.of(envelope), Output(mark_of(envelope))
    for event in unfold(completion):
        if isinstance(event, Started):
            learn(answer, output, event, envelope)
        elif isinstance(event, UsageReported):
            answer.usage = event.usage
        else:
            list(output.tell(event))
    terminal = completion.terminal
    finished = terminal if isinstance(terminal, Finished) else Finished("unknown")
    answer.reported = finished.extras
    status, details = ending(finished, refused=output.refused)
    list(output.close(status))
    return dumps(answer.resource(status, output.items(status), details))
