"""The prompt of a call put into its request, and what came from outside marked as data.

The prompt is the one that the request names, else the alias's. Must not know where prompts are
kept: it asks the runtime's book.
"""

from __future__ import annotations

import asyncio

from adapters.canonical.request import PromptRef, Request
from gateway.flow.context import Runtime
from gateway.policy.inject import TOOL_RESULTS, VARIABLES, Fence, declare, fence_results
from gateway.policy.prompts.apply import applied
from gateway.policy.prompts.definition import Prompt
from gateway.policy.prompts.settings import limits
from gateway.settings.snapshot import Alias

PROVIDERS_OWN = "pmpt_"
"""What the ids of prompts begin with that a provider keeps; they go on to it as they are."""


async def prompted(
    runtime: Runtime, alias: Alias, request: Request, fence: Fence
) -> tuple[Request, Prompt | None]:
    """``request`` with its prompt in it, and which prompt that is; as it was, without one.

    :raises Fault: ``bad_request`` or ``not_found`` for a prompt or variables that are none.
    """
    prompt = found(runtime, alias, request)
    if prompt is None:
        return request, None
    marks = fence if VARIABLES in (*alias.fenced, *prompt.fenced) else None
    once = limits(runtime.snapshot)
    if any(template is not None and template.loops for template in (prompt.system, prompt.user)):
        # a loop may take as long as the limits allow, and nobody else should wait for it
        return await asyncio.to_thread(applied, prompt, request, once, marks), prompt
    return applied(prompt, request, once, marks), prompt


def found(runtime: Runtime, alias: Alias, request: Request) -> Prompt | None:
    """The prompt that ``request`` names, else the alias's, else none.

    :raises Fault: ``bad_request`` or ``not_found``.
    """
    if request.prompt is not None:
        return named(runtime, request.prompt, request.origin)
    return None if alias.prompt is None else runtime.prompts.find(alias.prompt, None, "model")


def named(runtime: Runtime, ref: PromptRef, origin: str) -> Prompt | None:
    """The prompt behind a reference; ``None`` for one that the caller's provider keeps itself.

    :raises Fault: ``bad_request`` or ``not_found``.
    """
    kept_there = origin == "openai-responses" and ref.id.startswith(PROVIDERS_OWN)
    if kept_there and runtime.prompts.shelf(ref.id) is None:
        return None
    return runtime.prompts.find(ref.id, ref.version)


def fenced(request: Request, alias: Alias, prompt: Prompt | None, fence: Fence) -> Request:
    """``request`` with the results of tools marked, where that is wanted, and the marks
    explained, where there are any."""
    wanted = alias.fenced if prompt is None else (*alias.fenced, *prompt.fenced)
    if TOOL_RESULTS in wanted:
        request = fence_results(request, fence)
    return declare(request, fence)
