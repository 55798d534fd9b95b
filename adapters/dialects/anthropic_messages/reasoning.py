"""How much the model may think, in this protocol's two forms.

Newer models think adaptively and are steered by ``output_config.effort``; older ones are given
a budget of tokens. Which a model takes stands in its facts, and what a caller wrote for the
other form is converted and named. A caller's ``max_tokens`` always holds: the budget gives way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from adapters.canonical.facts import Facts
from adapters.canonical.record import record
from adapters.canonical.request import Reasoning, Request
from adapters.dialects.anthropic_messages.notes import Notes

EFFORTS = ("low", "medium", "high", "xhigh", "max")
"""What ``output_config.effort`` takes, in rising order."""

BUDGETS: Mapping[str, int] = {
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 32_768,
}
"""Tokens of thinking for models that want a budget, by the effort asked for."""

MIN_BUDGET = 1_024
"""The least ``budget_tokens`` that the API takes."""

DEFAULT_MAX_TOKENS = 4_096
"""``max_tokens`` where neither the caller nor the facts name one; every model takes it."""

Json = dict[str, Any]


@record(frozen=True, slots=True)
class Situation:
    """What else of the request bears on thinking: a forced tool, an answer begun by the
    caller, or tool results whose round began without thinking."""

    forced_tool: bool
    prefilled: bool
    resumes_without_thinking: bool


@record(frozen=True, slots=True)
class Plan:
    """``max_tokens`` and what stands in ``thinking`` and ``output_config.effort``, if anything."""

    max_tokens: int
    thinking: Json | None = None
    effort: str | None = None

    @property
    def thinks(self) -> bool:
        """Whether thinking is asked for: then most sampling fields are refused."""
        return self.thinking is not None and self.thinking["type"] != "disabled"


def plan(request: Request, facts: Facts, situation: Situation, notes: Notes) -> Plan:
    """Decide the three fields for ``request``.

    :raises Fault: ``bad_request`` for an effort that does not exist or a budget under the
        minimum.
    """
    thinking, effort = _Planner(facts, notes).decide(request.reasoning, situation)
    limit = request.sampling.max_output_tokens
    given = limit is not None
    if limit is None:
        limit = facts.max_output or DEFAULT_MAX_TOKENS
        if facts.max_output is None and thinking is not None:
            limit += thinking.get("budget_tokens", 0)
        notes.inject("max_tokens", limit)
    explicit = request.reasoning is not None and request.reasoning.budget_tokens is not None
    if thinking is not None and not (given and explicit and notes.own):
        thinking = _fit_budget(thinking, limit, notes)
    return Plan(limit, thinking, effort)


def _fit_budget(thinking: Json, limit: int, notes: Notes) -> Json | None:
    """The budget below ``limit``, with room for the answer; none where there is no room."""
    budget = thinking.get("budget_tokens")
    if budget is None or budget < limit:
        return thinking
    if limit <= MIN_BUDGET:
        notes.drop("reasoning.effort" if not notes.own else "reasoning.budget_tokens")
        return None
    fitted = max(MIN_BUDGET, limit - max(MIN_BUDGET, limit // 4))
    notes.adjust("reasoning.budget_tokens", budget, fitted)
    return {**thinking, "budget_tokens": fitted}


class _Planner:
    """Chooses a form of thinking and the effort."""

    __slots__ = ("_facts", "_notes")

    def __init__(self, facts: Facts, notes: Notes) -> None:
        self._facts = facts
        self._notes = notes

    def decide(
        self, reasoning: Reasoning | None, situation: Situation
    ) -> tuple[Json | None, str | None]:
        """``thinking`` and ``effort``, before ``max_tokens`` is looked at."""
        if reasoning is None:
            return None, None
        if reasoning.extras:
            kept = self._notes.extras(reasoning.extras, self._notes.name("reasoning"))
            reasoning = replace(reasoning, extras=kept)
        mode = self._mode(reasoning)
        if mode == "disabled":
            return self._disabled(reasoning)
        if mode is None:
            return None, self._effort(reasoning.effort)
        field = "reasoning.effort" if reasoning.mode is None else "reasoning.mode"
        if self._facts.thinking == "none" or not self._facts.can("reasoning"):
            self._notes.drop(field)
            return None, None
        form = self._form(mode)
        if (
            situation.forced_tool
            or situation.prefilled
            or (form == "enabled" and situation.resumes_without_thinking)
        ):
            # Refused together by the API; a forced tool and the caller's words weigh more.
            self._notes.drop(field)
            return None, self._effort(reasoning.effort) if form != "enabled" else None
        if form == "enabled":
            return self._manual(reasoning)
        return self._adaptive(reasoning, mode, form)

    def _mode(self, reasoning: Reasoning) -> str | None:
        """The mode asked for. An effort alone asks for thinking only in OpenAI's terms: in
        this protocol's own it steers the answer and leaves thinking as it is."""
        if reasoning.mode is not None:
            return reasoning.mode
        if reasoning.effort == "none":
            return "disabled"
        if reasoning.budget_tokens is not None:
            return "enabled"
        if reasoning.effort is not None and not self._notes.own:
            return "wanted"
        return None

    def _form(self, mode: str) -> str:
        if mode == "wanted":
            return "adaptive" if self._facts.thinking == "adaptive" else "enabled"
        if mode == "enabled" and self._facts.thinking == "adaptive":
            self._notes.adjust("reasoning.mode", "enabled", "adaptive")
            return "adaptive"
        if mode == "adaptive" and not self._facts.can("adaptive_thinking"):
            self._notes.adjust("reasoning.mode", "adaptive", "enabled")
            return "enabled"
        return mode

    def _disabled(self, reasoning: Reasoning) -> tuple[Json | None, str | None]:
        """Thinking off. A model whose efforts are known and lack ``none`` always thinks: it
        gets its lowest effort."""
        effort = None if reasoning.effort == "none" else self._effort(reasoning.effort)
        if self._facts.thinking == "none" or not self._facts.can("reasoning"):
            return None, None
        efforts = self._facts.efforts
        if efforts and "none" not in efforts and not self._notes.own:
            lowest = self._effort(efforts[0])
            self._notes.adjust("reasoning.effort", "none", lowest)
            return None, lowest
        return {"type": "disabled", **reasoning.extras}, effort

    def _adaptive(
        self, reasoning: Reasoning, mode: str, form: str
    ) -> tuple[Json | None, str | None]:
        effort = self._effort(reasoning.effort)
        if mode == "enabled" and effort is None and reasoning.budget_tokens is not None:
            effort = self._effort(_effort_for(reasoning.budget_tokens))
            self._notes.adjust("reasoning.budget_tokens", reasoning.budget_tokens, effort)
        return {"type": form, **self._display(reasoning), **reasoning.extras}, effort

    def _manual(self, reasoning: Reasoning) -> tuple[Json | None, str | None]:
        budget = reasoning.budget_tokens
        if budget is None:
            effort = self._scaled(reasoning.effort or "medium")
            budget = BUDGETS.get(effort, BUDGETS["medium"])
            if reasoning.effort is None or effort not in BUDGETS:
                self._notes.inject("thinking.budget_tokens", budget)
        elif budget < MIN_BUDGET:
            raise self._notes.reject(
                "reasoning.budget_tokens", f"A thinking budget is at least {MIN_BUDGET} tokens."
            )
        sent = self._effort(reasoning.effort) if self._notes.own else None
        thinking = {"type": "enabled", "budget_tokens": budget, **self._display(reasoning)}
        return {**thinking, **reasoning.extras}, sent

    @staticmethod
    def _display(reasoning: Reasoning) -> Json:
        if reasoning.display is not None:
            return {"display": reasoning.display}
        return {"display": "summarized"} if reasoning.summary is not None else {}

    def _effort(self, effort: str | None) -> str | None:
        """An effort that the model takes: the nearest below the one asked for."""
        if effort is None:
            return None
        scaled = self._scaled(effort)
        known = [name for name in EFFORTS if name in self._facts.efforts]
        if not known or scaled in known or scaled not in EFFORTS:
            return scaled
        below = [name for name in known if EFFORTS.index(name) <= EFFORTS.index(scaled)]
        fitted = below[-1] if below else known[0]
        self._notes.adjust("reasoning.effort", effort, fitted)
        return fitted

    def _scaled(self, effort: str) -> str:
        if effort in EFFORTS or self._notes.own:
            return effort
        if effort == "minimal":
            self._notes.adjust("reasoning.effort", "minimal", "low")
            return "low"
        raise self._notes.reject(
            "reasoning.effort", f"The effort must be one of: none, minimal, {', '.join(EFFORTS)}."
        )


def _effort_for(budget: int) -> str:
    """The smallest effort whose budget covers ``budget``."""
    return next((name for name, tokens in BUDGETS.items() if budget <= tokens), "max")
