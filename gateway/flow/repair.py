"""What a target is asked again after an answer that did not pass: to correct it, or with more
room. Decides only what; whether there is room for another try is ``routing.retry``'s word.
"""

from __future__ import annotations

from dataclasses import replace

from adapters.canonical.completion import Completion
from adapters.canonical.request import Request
from gateway.flow.context import Call
from gateway.flow.count import Counted
from gateway.flow.record import Try
from gateway.flow.rewrite import reasked
from gateway.policy.tokens import text_length
from gateway.routing.retry import Decision
from gateway.structured.reask import reask
from gateway.structured.verdict import Verdict

MORE_ROOM = 16_384
"""Output tokens asked for where the model's own maximum is not known."""


class Repairs:
    """The re-asks of one call. ``asked`` is what the target under way has been asked."""

    __slots__ = ("_call", "_left", "_original", "_widened", "asked", "request")

    def __init__(self, call: Call, counted: Counted) -> None:
        self._call = call
        self._original = counted
        self._left = call.alias.max_repairs
        self._widened = False
        self.asked = counted
        self.request = call.request

    def start_over(self) -> None:
        """The next target is asked what the caller asked."""
        self.asked = self._original
        self.request = self._call.request

    def after(self, one: Try) -> Decision | None:
        """How to ask again after ``one``; ``None`` if a re-ask is no help or used up."""
        proof = one.proof
        if proof is None or proof.answer is None or proof.verdict is None or proof.verdict.ok:
            return None
        if proof.verdict.kind == "output_truncated":
            return self._widen(one)
        return self._correct(proof.answer, proof.verdict)

    def _correct(self, answer: Completion, verdict: Verdict) -> Decision | None:
        if self._left == 0:
            return None
        request = reasked(self._call, reask(self.request, answer, verdict))
        if request is None:
            return None
        self._left -= 1
        self._ask(request)
        return Decision("repair", why=f"{verdict.kind}: asked to correct it")

    def _widen(self, one: Try) -> Decision | None:
        """Once, and only where the caller set no limit: theirs is theirs (case O05)."""
        limit = one.prepared.facts.max_output or MORE_ROOM
        used = one.meter.usage.output if one.meter.usage is not None else None
        is_full = used is not None and used >= limit
        if self._widened or is_full or self.request.sampling.max_output_tokens is not None:
            return None
        self._widened = True
        sampling = replace(self.request.sampling, max_output_tokens=limit)
        self._ask(replace(self.request, sampling=sampling))
        return Decision("more_room", why="output_truncated: asked again with more room")

    def _ask(self, request: Request) -> None:
        """``request`` is the next; what it says beyond the caller's own counts, too."""
        added = request.messages[len(self._call.request.messages) :]
        size = self._call.size + sum(text_length(part) for one in added for part in one.parts)
        self.request = request
        self.asked = Counted(request, size)
