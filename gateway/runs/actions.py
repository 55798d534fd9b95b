"""What a decider may want done: values that an executor performs. Pure words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adapters.canonical.record import record
from gateway.runs.events import Draft


@record(frozen=True, slots=True)
class Emit:
    """Write these events; nothing is done besides. Decided on a state that must still hold when
    they are written."""

    drafts: tuple[Draft, ...]


@record(frozen=True, slots=True)
class LookUpTools:
    """Find out what tools an agent has now, and write ``agent.started``. ``thread`` is named
    where a run has several: each begins with its own look."""

    agent: str
    thread: str | None = None

    @property
    def key(self) -> str:
        """One of a kind among the actions under way."""
        return f"tools:{self.agent}" if self.thread is None else f"tools:{self.thread}"


@record(frozen=True, slots=True)
class AskModel:
    """Make the model turn ``step``."""

    step: str

    @property
    def key(self) -> str:
        """One of a kind among the actions under way."""
        return f"model:{self.step}"


@record(frozen=True, slots=True)
class MakeCall:
    """Make a tool call: intent, effect, result."""

    call_id: str

    @property
    def key(self) -> str:
        """One of a kind among the actions under way."""
        return f"call:{self.call_id}"


@record(frozen=True, slots=True)
class Keep:
    """Store a definition for later runs as a new version of ``name``, then write the events that
    ``told`` makes of the version that it has become.

    One that is stored already is not stored again: as any version after ``since``, or where that
    is not given as the newest.
    """

    name: str
    spec: Mapping[str, Any]
    told: Callable[[int], tuple[Draft, ...]]
    since: int | None = None

    @property
    def key(self) -> str:
        """One of a kind among the actions under way."""
        return f"keep:{self.name}"


@record(frozen=True, slots=True)
class Halt:
    """Stop whatever is under way, first kindly and then for good, and write down how it stood."""


@record(frozen=True, slots=True)
class Stop:
    """Stop what is under way in these threads, and let all others go on."""

    threads: tuple[str, ...]


@record(frozen=True, slots=True)
class LookAgain:
    """Decide anew at Unix time ``at``, though nothing may have happened."""

    at: float


Effect = LookUpTools | AskModel | MakeCall | Keep
Action = Emit | Effect | Halt | Stop | LookAgain
Decision = tuple[Action, ...]
"""Nothing in it: wait for what is under way, or for somebody."""

WAIT: Decision = ()


@record(frozen=True, slots=True)
class End:
    """A rule's finding: a thread has come to this end. What that means (the end of the run, or of
    one node) is for the decider that asked. ``whole``: it means the run in any case."""

    type: str
    data: Mapping[str, Any]
    whole: bool = False


@record(frozen=True, slots=True)
class Ask:
    """A rule's finding: a thread can't go on before somebody answers."""

    what: str
    children: tuple[str, ...] = ()


Finding = tuple[Action | End | Ask, ...]
"""What a rule says of one thread: a decision, or one end or question."""
