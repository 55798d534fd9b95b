"""What a decider may want done: values that an executor performs. Pure words."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.runs.events import Draft


@dataclass(frozen=True, slots=True)
class Emit:
    """Write these events; nothing is done besides. Decided on a state that must still hold when
    they are written."""

    drafts: tuple[Draft, ...]


@dataclass(frozen=True, slots=True)
class LookUpTools:
    """Find out what tools an agent has now, and write ``agent.started``."""

    agent: str

    @property
    def key(self) -> str:
        """One of a kind among the actions under way."""
        return f"tools:{self.agent}"


@dataclass(frozen=True, slots=True)
class AskModel:
    """Make the model turn ``step``."""

    step: str

    @property
    def key(self) -> str:
        """One of a kind among the actions under way."""
        return f"model:{self.step}"


@dataclass(frozen=True, slots=True)
class MakeCall:
    """Make a tool call: intent, effect, result."""

    call_id: str

    @property
    def key(self) -> str:
        """One of a kind among the actions under way."""
        return f"call:{self.call_id}"


@dataclass(frozen=True, slots=True)
class Halt:
    """Stop whatever is under way, first kindly and then for good, and write down how it stood."""


Effect = LookUpTools | AskModel | MakeCall
Action = Emit | Effect | Halt
Decision = tuple[Action, ...]
"""Nothing in it: wait for what is under way, or for somebody."""

WAIT: Decision = ()
