"""Scripts: answers that a test lays down beforehand, one for each call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from adapters.canonical.record import record
from adapters.simulator.words import (
    Answer,
    Ask,
    Call,
    Part,
    Refuse,
    Refused,
    Reply,
    Say,
    Think,
    Trouble,
)

Scripted = Answer | Part | Sequence[Part] | Reply | str
"""An answer, its parts, a whole HTTP reply, or a name of the catalogue (``fault-status-503``)."""


@record(slots=True)
class _Script:
    answers: tuple[Scripted, ...]
    by: Literal["call", "turn"]
    used: int = 0


class Scripts:
    """The scripts of all models."""

    def __init__(self) -> None:
        self._scripts: dict[str, _Script] = {}

    def set(self, model: str, answers: Sequence[Scripted], by: Literal["call", "turn"]) -> None:
        """Lay down a script; it takes the place of an earlier one for the same model."""
        self._scripts[model] = _Script(tuple(answers), by)

    def clear(self) -> None:
        """Forget all scripts."""
        self._scripts.clear()

    def next(self, ask: Ask) -> Answer | Reply | str | None:
        """What the script says for this call; ``None`` if the model has none.

        :raises Refused: a 500 when the script is at its end, so that a call too many shows.
        """
        script = self._scripts.get(ask.model)
        if script is None:
            return None
        place = script.used if script.by == "call" else ask.turn
        script.used += 1
        if place >= len(script.answers):
            message = (
                f"The script of {ask.model} has {len(script.answers)} answers; "
                f"this is call {place + 1}."
            )
            raise Refused(
                Trouble(500, message, "api_error", "script_exhausted", openai_type="server_error")
            )
        return _normal(script.answers[place])


def _normal(scripted: Scripted) -> Answer | Reply | str:
    match scripted:
        case Answer() | Reply() | str():
            return scripted
        case Say() | Think() | Call() | Refuse():
            return Answer((scripted,))
        case _:
            return Answer(tuple(scripted))
