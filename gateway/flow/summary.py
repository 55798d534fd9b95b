"""The summary of its reasoning that a model is asked for where the caller says nothing of it.

OpenAI's models show none unless asked, and callers of Chat have no field to ask with; so the
alias may say it for them (fault kind K07: from a named setting, and written down). Pure.
"""

from __future__ import annotations

from dataclasses import replace

from adapters.canonical.request import Reasoning, Request
from adapters.registry import DIALECTS
from gateway.settings.snapshot import Alias, Target


def summarised(request: Request, alias: Alias, target: Target) -> tuple[Request, tuple[str, ...]]:
    """``request`` with the alias's word on summaries, and what was added as ``name=value``;
    unchanged where the caller has said something, or ``target`` has nothing to show."""
    wanted = alias.reasoning_summary
    if wanted is None:
        return request, ()
    asked = request.reasoning or Reasoning()
    if _has_said(asked) or not _shows(target):
        return request, ()
    added = replace(request, reasoning=replace(asked, summary=wanted))
    return added, (f"reasoning.summary={wanted}",)


def _has_said(asked: Reasoning) -> bool:
    off = asked.effort == "none" or asked.mode == "disabled"
    return off or asked.summary is not None or asked.display is not None


def _shows(target: Target) -> bool:
    deployment = target.deployment
    field = DIALECTS[deployment.provider.dialect].FIELDS["reasoning.summary"]
    return field.state == "mapped" and deployment.facts.can("reasoning")
