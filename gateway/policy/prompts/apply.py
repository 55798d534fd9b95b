"""What a prompt makes of a request: system, examples, history, user, in this order.

Pure but for the fence's draw. Must not know where prompts come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text
from adapters.canonical.request import Message, Request
from adapters.wire.json import dumps
from gateway.policy.inject import Fence
from gateway.policy.prompts.definition import Prompt
from gateway.policy.prompts.rendering import Limits, RenderingFailed, Wrap
from gateway.policy.prompts.variables import values_of

if TYPE_CHECKING:
    from gateway.policy.prompts.template import Template

PINNED = ("system", "developer")


def applied(
    prompt: Prompt, request: Request, limits: Limits, fence: Fence | None = None
) -> Request:
    """``request`` with the prompt in it; what it asked of the prompt is gone.

    The prompt's text comes before the caller's own instructions, its examples before the history
    (but behind system messages that lead it), its user text last. What a request says itself is
    over what the prompt brings along.

    :param fence: marks what comes out of a variable.

    :raises Fault: ``bad_request`` for variables that do not fit, or that make no text.
    """
    given = {} if request.prompt is None else request.prompt.variables
    values = values_of(prompt.variables, given, prompt.reference)
    rendered = _Rendering(prompt, values, limits, None if fence is None else fence.wrap)
    system, user = rendered.text(prompt.system), rendered.text(prompt.user)
    if prompt.user is None and given:
        user = rendered.data()
    before = (Text(system),) if system else ()
    last = (Message("user", (Text(user),)),) if user.strip() else ()
    leading = tuple(takewhile(lambda message: message.role in PINNED, request.messages))
    return replace(
        request,
        instructions=(*before, *request.instructions),
        messages=(*leading, *_examples(prompt), *request.messages[len(leading) :], *last),
        output=prompt.output if request.output is None else request.output,
        prompt=None,
    )


class _Rendering:
    """The templates of one prompt over one call's values, under one set of limits."""

    def __init__(
        self, prompt: Prompt, values: Mapping[str, Any], limits: Limits, wrap: Wrap | None
    ) -> None:
        self._prompt = prompt
        self._values = values
        self._limits = limits
        self._wrap = wrap

    def text(self, template: Template | None) -> str:
        if template is None:
            return ""
        try:
            return template.render(self._values, self._limits, self._wrap)
        except RenderingFailed as failed:
            raise Fault(
                "bad_request",
                f"The prompt {self._prompt.reference} can't be made of these variables: {failed}.",
                param="prompt.variables",
                code="prompt_not_rendered",
            ) from failed

    def data(self) -> str:
        """The values as JSON."""
        text = dumps(self._values).decode()
        return text if self._wrap is None else self._wrap(text)


def _examples(prompt: Prompt) -> tuple[Message, ...]:
    return tuple(
        message
        for example in prompt.examples
        for message in (
            Message("user", (Text(example.user),)),
            Message("assistant", (Text(example.assistant),)),
        )
    )
