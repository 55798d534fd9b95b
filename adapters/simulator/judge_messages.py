"""What Anthropic's Messages refuse: fields, sampling, thinking, tools, output.

The conversation's own rules are in :mod:`adapters.simulator.judge_turns`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from adapters.simulator.judge import objects, refuse, schemas
from adapters.simulator.judge_schema import anthropic_compiles
from adapters.simulator.judge_turns import judge_turns
from adapters.simulator.words import Body

FIELDS = frozenset(
    {"cache_control", "container", "diagnostics", "inference_geo", "max_tokens", "messages"}
    | {"metadata", "model", "output_config", "service_tier", "speed", "stop_sequences"}
    | {"stream", "system", "thinking", "tool_choice", "tools", "user_profile_id", "workspace_id"}
)
BETA_FIELDS = frozenset(
    {"betas", "billing_policy", "compaction", "context_management", "fallback_credit_token"}
    | {"fallbacks", "mcp_servers", "output_format", "thread"}
)
SAMPLING = frozenset({"temperature", "top_p", "top_k"})
TOOL_FIELDS = frozenset(
    {"allowed_callers", "cache_control", "defer_loading", "description"}
    | {"eager_input_streaming", "input_examples", "input_schema", "name", "strict", "type"}
)
_WITHOUT_SAMPLING = "2026-10-21"
"""From this API version on, sampling fields are unknown, and the beta fields are not."""
_ONE_OF_TWO = re.compile(r"claude-(?:opus|sonnet|haiku|fable)-(?:4-[1-9]|[5-9])")
"""Models that take temperature or top_p, not both."""
_UNSUPPORTED = {
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("minLength", "maxLength"),
    "array": ("maxItems", "uniqueItems"),
}
_MAX_MARKS = 4


def judge(body: Body, headers: Mapping[str, str]) -> None:
    """Refuse what the vendor refuses.

    :raises Refused: with the vendor's 400.
    """
    version = headers.get("anthropic-version")
    if version is None:
        refuse("anthropic-version: header is required")
    _fields(body, headers, str(version))
    limit = body.get("max_tokens")
    if "max_tokens" not in body:
        refuse("max_tokens: Field required")
    if isinstance(limit, bool) or not isinstance(limit, int):
        refuse("max_tokens: Input should be a valid integer")
    if limit < 1:
        refuse("max_tokens: Input should be greater than or equal to 1")
    _sampling(body)
    _thinking(body, limit)
    _tools(body)
    _output(body)
    _compiled(body)
    marks = sum(1 for block in _dicts(body) if "cache_control" in block)
    if marks > _MAX_MARKS:
        refuse(
            f"A maximum of {_MAX_MARKS} blocks with cache_control may be provided. Found {marks}."
        )
    judge_turns(body)


def judge_count(body: Body, headers: Mapping[str, str]) -> None:
    """The same for ``count_tokens``, which takes no output limit.

    :raises Refused: with the vendor's 400.
    """
    for field in ("max_tokens", "stream"):
        if field in body:
            refuse(f"{field}: Extra inputs are not permitted")
    judge({**body, "max_tokens": 1 << 20}, headers)


def _fields(body: Body, headers: Mapping[str, str], version: str) -> None:
    allowed = FIELDS
    if headers.get("anthropic-beta") or version >= _WITHOUT_SAMPLING:
        allowed |= BETA_FIELDS
    if version < _WITHOUT_SAMPLING:
        allowed |= SAMPLING
    extra(body, allowed, "")


def extra(value: Mapping[str, Any], allowed: Collection[str], where: str) -> None:
    """No field but the allowed ones.

    :raises Refused: 400 with the path of the first other one.
    """
    for field in value:
        if field not in allowed:
            refuse(f"{where}{field}: Extra inputs are not permitted")


def _sampling(body: Body) -> None:
    for field in ("temperature", "top_p"):
        value = body.get(field)
        if value is not None and not 0 <= value <= 1:
            refuse(f"{field}: range: 0..1")
    if body.get("top_k") is not None and body["top_k"] < 0:
        refuse("top_k: Input should be greater than or equal to 0")
    both = body.get("temperature") is not None and body.get("top_p") is not None
    if both and _ONE_OF_TWO.match(body["model"]):
        refuse(
            "`temperature` and `top_p` cannot both be specified for this model. "
            "Please use only one."
        )
    for index, stop in enumerate(body.get("stop_sequences") or ()):
        if not isinstance(stop, str):
            refuse(f"stop_sequences.{index}: Input should be a valid string")
        if not stop.strip():
            refuse("stop_sequences: each stop sequence must contain non-whitespace")


def _thinking(body: Body, limit: int) -> None:
    thinking = body.get("thinking") or {"type": "disabled"}
    kind = thinking.get("type")
    if kind not in ("enabled", "adaptive", "between_tools", "disabled"):
        refuse(
            f"thinking: Input tag '{kind}' found using 'type' does not match any of the "
            "expected tags: 'adaptive', 'between_tools', 'disabled', 'enabled'"
        )
    if kind == "enabled":
        _budget(thinking.get("budget_tokens"), limit)
    if kind != "disabled":
        _beside_thinking(body)


def _budget(budget: int | None, limit: int) -> None:
    if budget is None:
        refuse("thinking.enabled.budget_tokens: Field required")
    if budget < 1024:
        refuse("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    if budget >= limit:
        refuse("`max_tokens` must be greater than `thinking.budget_tokens`.")


def _beside_thinking(body: Body) -> None:
    """What can't stand beside thinking."""
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        refuse("Thinking may not be enabled when tool_choice forces tool use.")
    if body.get("temperature") not in (None, 1):
        refuse("`temperature` may only be set to 1 when thinking is enabled.")
    if body.get("top_k") is not None:
        refuse("`top_k` must be unset when thinking is enabled.")
    if body.get("top_p") is not None and body["top_p"] < 0.95:
        refuse("`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.")


def _tools(body: Body) -> None:
    tools = body.get("tools") or []
    names = [tool.get("name") for tool in tools]
    for index, tool in enumerate(tools):
        if tool.get("type", "custom") == "custom" or "input_schema" in tool:
            _tool(tool, f"tools.{index}.custom.")
    if len(set(names)) < len(names):
        refuse("tools: Tool names must be unique.")
    choice = body.get("tool_choice")
    if choice is None:
        return
    if choice.get("type") not in ("auto", "any", "tool", "none"):
        refuse(f"tool_choice: Input tag '{choice.get('type')}' does not match the expected tags")
    if not tools:
        refuse("tool_choice: may only be specified while providing tools")
    if choice["type"] == "tool" and choice.get("name") not in names:
        refuse(f"Tool '{choice.get('name')}' not found in provided tools")


def _tool(tool: Mapping[str, Any], where: str) -> None:
    """A tool of the caller's own; server tools have fields of their own."""
    extra(tool, TOOL_FIELDS, where)
    name = tool.get("name")
    if not isinstance(name, str) or re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name) is None:
        refuse(f"{where}name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if "input_schema" not in tool:
        refuse(f"{where}input_schema: Field required")
    if tool["input_schema"].get("type") != "object":
        refuse(f"{where}input_schema.type: Input should be 'object'")
    if set(tool["input_schema"]) & {"oneOf", "allOf", "anyOf"}:
        refuse(
            f"{where}input_schema: input_schema does not support oneOf, allOf, or anyOf at "
            "the top level"
        )


def _output(body: Body) -> None:
    """Structured output takes a subset of JSON Schema: closed objects, few limits."""
    config = body.get("output_config") or {}
    extra(config, {"effort", "format", "task_budget"}, "output_config.")
    output = config.get("format") or body.get("output_format")
    if output is None:
        return
    if output.get("type") != "json_schema" or not isinstance(output.get("schema"), Mapping):
        refuse("output_config.format: Input should be a JSON schema format")
    for _, node in objects(output["schema"]):
        if node.get("additionalProperties") is not False:
            refuse(
                "output_config.format.schema: For 'object' type, 'additionalProperties' must be "
                "explicitly set to false"
            )
    for _, node in schemas(output["schema"]):
        kind = node.get("type")
        wrong = [key for key in _UNSUPPORTED.get(str(kind), ()) if key in node]
        if node.get("minItems", 0) not in (0, 1):
            wrong.append("minItems")
        if wrong:
            refuse(
                f"output_config.format.schema: For '{kind}' type, properties "
                f"{', '.join(wrong)} are not supported"
            )


def _compiled(body: Body) -> None:
    """What strict tools and the output make the vendor compile, all together."""
    strict = [tool["input_schema"] for tool in body.get("tools") or () if tool.get("strict")]
    output = (body.get("output_config") or {}).get("format") or body.get("output_format")
    anthropic_compiles([*strict, *([] if output is None else [output["schema"]])])


def _dicts(body: Body) -> Iterator[Mapping[str, Any]]:
    """Every block that may carry a cache mark."""
    yield from body.get("tools") or ()
    system = body.get("system")
    yield from system if isinstance(system, list) else ()
    for message in body.get("messages") or ():
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            yield block
            inner = block.get("content")
            yield from inner if isinstance(inner, list) else ()
