"""What Anthropic's Messages refuse in a conversation: roles, blocks, pairs, seals."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any

from adapters.simulator.judge import ID_CHARACTERS, refuse
from adapters.simulator.seal import signed, unseal
from adapters.simulator.words import Body

BLOCK_FIELDS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"cache_control", "citations", "text", "type"}),
    "image": frozenset({"cache_control", "source", "transformations", "type"}),
    "document": frozenset({"cache_control", "citations", "context", "source", "title", "type"}),
    "tool_use": frozenset(
        {"cache_control", "caller", "id", "input", "name", "toolset_name", "type"}
    ),
    "tool_result": frozenset(
        {"cache_control", "content", "is_error", "tool_use_id", "toolset_name", "type"}
    ),
    "thinking": frozenset({"signature", "thinking", "type"}),
    "redacted_thinking": frozenset({"data", "type"}),
}
OTHER_BLOCKS = frozenset(
    {"search_result", "server_tool_use", "web_search_tool_result", "web_fetch_tool_result"}
    | {"code_execution_tool_result", "bash_code_execution_tool_result", "container_upload"}
    | {"text_editor_code_execution_tool_result", "tool_search_tool_result", "tool_reference"}
    | {"advisor_tool_result", "compaction", "mcp_tool_use", "mcp_tool_result", "browser_state"}
    | {"fallback", "tool_addition", "tool_removal"}
)
"""Blocks that pass unjudged."""
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_WITHOUT_SYSTEM_TURNS = re.compile(
    r"claude-(?:instant|[123]|(?:sonnet|haiku)-4|4-|opus-4-(?:[0-7]\b|20)|sonnet-5)"
)
"""Models older than Opus 4.8, and Sonnet 5: no system message amid the turns."""
_MAX_ID = 64


def judge_turns(body: Body) -> None:
    """Refuse what the vendor refuses.

    :raises Refused: with the vendor's 400.
    """
    messages = body.get("messages")
    if not isinstance(messages, list):
        refuse("messages: Field required")
    if not messages:
        refuse("messages: at least one message is required")
    _system(body.get("system"))
    for index, message in enumerate(messages):
        _role(messages, index, body["model"])
        _content(message.get("content"), f"messages.{index}", last=index + 1 == len(messages))
    _prefill(messages[-1])
    if "thread" not in body:
        _pairing(messages)
    if (body.get("thinking") or {}).get("type") == "enabled":
        _thought_before_tools(messages)


def _system(system: Any) -> None:
    if system is None or isinstance(system, str):
        return
    for block in system:
        if block.get("type") != "text":
            refuse("system: only text blocks are permitted")
        if not block.get("text"):
            refuse("system: text content blocks must be non-empty")
        _extra(block, "system.0.text")


def _role(messages: list[Any], index: int, model: str) -> None:
    message = messages[index]
    role = message.get("role")
    for field in message:
        if field not in ("role", "content"):
            refuse(f"messages.{index}.{field}: Extra inputs are not permitted")
    if role == "system":
        before = messages[index - 1].get("role") if index else None
        after = messages[index + 1].get("role") if index + 1 < len(messages) else "assistant"
        if index and _WITHOUT_SYSTEM_TURNS.match(model):
            refuse("messages: role 'system' is not supported on this model")
        if before != "user" or after != "assistant":
            refuse(
                'messages: Unexpected role "system". The Messages API accepts a top-level '
                '`system` parameter, not "system" as an input message role.'
            )
    elif role not in ("user", "assistant"):
        refuse(f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".')
    elif index == 0 and role != "user":
        refuse('messages: first message must use the "user" role')


def _content(content: Any, where: str, *, last: bool) -> None:
    if isinstance(content, str):
        if not content.strip() and not last:
            refuse(
                f"{where}: all messages must have non-empty content except for the optional "
                "final assistant message"
            )
        return
    if not isinstance(content, list):
        refuse(f"{where}.content: Input should be a valid list")
    if not content and not last:
        refuse(f"{where}: all messages must have non-empty content")
    for place, block in enumerate(content):
        _block(block, f"{where}.content.{place}")
    if content and all(block["type"] == "text" and not block["text"].strip() for block in content):
        refuse("messages: text content blocks must contain non-whitespace text")


def _prefill(message: Any) -> None:
    """The words that the model is to go on from don't end with blanks."""
    content = message["content"]
    text = content if isinstance(content, str) else (content or [{}])[-1].get("text", "")
    if message["role"] == "assistant" and text != text.rstrip():
        refuse("messages: final assistant content cannot end with trailing whitespace")


def _block(block: Any, where: str) -> None:
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind in OTHER_BLOCKS:
        return
    check = _CHECKS.get(str(kind))
    if check is None:
        refuse(
            f"{where}: Input tag '{kind}' found using 'type' does not match any of the "
            "expected tags"
        )
    _extra(block, f"{where}.{kind}")
    check(block, where)


def _extra(block: Mapping[str, Any], where: str) -> None:
    for field in block:
        if field not in BLOCK_FIELDS[block["type"]]:
            refuse(f"{where}.{field}: Extra inputs are not permitted")


def _text(block: Mapping[str, Any], where: str) -> None:
    if not isinstance(block.get("text"), str):
        refuse(f"{where}.text.text: Field required")
    if not block["text"]:
        refuse("messages: text content blocks must be non-empty")


def _media(block: Mapping[str, Any], where: str) -> None:
    source = block.get("source") or {}
    kind = source.get("type")
    if kind == "base64":
        media_type = source.get("media_type")
        allowed = _IMAGES if block["type"] == "image" else ("application/pdf",)
        if media_type not in allowed:
            listed = ", ".join(f"'{one}'" for one in allowed)
            refuse(f"{where}.{block['type']}.source.base64.media_type: Input should be {listed}")
        try:
            base64.b64decode(source.get("data") or "!", validate=True)
        except ValueError:
            refuse(f"{where}.{block['type']}.source.base64: invalid base64 data")
    elif kind == "url":
        if not str(source.get("url")).startswith(("https://", "http://")):
            refuse(f"{where}.{block['type']}.source.url: Only HTTP(S) URLs are supported")
    elif kind not in ("file", "text", "content"):
        refuse(f"{where}.{block['type']}.source: Input tag '{kind}' is not expected")


def _tool_use(block: Mapping[str, Any], where: str) -> None:
    _call_id(block.get("id"), f"{where}.tool_use.id")
    if not isinstance(block.get("input"), Mapping):
        refuse(f"{where}.tool_use.input: Input should be a valid dictionary")


def _tool_result(block: Mapping[str, Any], where: str) -> None:
    _call_id(block.get("tool_use_id"), f"{where}.tool_result.tool_use_id")
    content = block.get("content")
    if not isinstance(content, list):
        return
    for place, inner in enumerate(content):
        if inner.get("type") not in ("text", "image", "document", *OTHER_BLOCKS):
            refuse(
                f"{where}.tool_result.content.{place}: Input tag '{inner.get('type')}' is not "
                "expected"
            )
        _block(inner, f"{where}.tool_result.content.{place}")


def _call_id(call_id: Any, where: str) -> None:
    if not isinstance(call_id, str) or ID_CHARACTERS.fullmatch(call_id) is None:
        refuse(f"{where}: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if len(call_id) > _MAX_ID:
        refuse(f"{where}: String should have at most {_MAX_ID} characters")


def _thinking(block: Mapping[str, Any], where: str) -> None:
    if "signature" not in block:
        refuse(f"{where}.thinking.signature: Field required")
    if not signed(str(block.get("thinking")), block["signature"]):
        refuse(f"{where}: Invalid `signature` in `thinking` block")


def _redacted(block: Mapping[str, Any], where: str) -> None:
    if unseal(block.get("data")) is None:
        refuse(f"{where}: Invalid `data` in `redacted_thinking` block")


_CHECKS: Mapping[str, Callable[[Mapping[str, Any], str], None]] = {
    "text": _text,
    "image": _media,
    "document": _media,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
}


def _blocks(message: Any, kind: str, field: str) -> list[str]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [block[field] for block in blocks if block.get("type") == kind]


def _pairing(messages: list[Any]) -> None:
    """Each ``tool_use`` has its result at the start of the next message, and nothing else has."""
    for index, message in enumerate(messages):
        used = _blocks(message, "tool_use", "id") if message["role"] == "assistant" else []
        if len(set(used)) < len(used):
            refuse("messages: `tool_use` ids must be unique")
        following = messages[index + 1] if index + 1 < len(messages) else None
        if used and following is not None:
            _answered(index, used, following)
        before = messages[index - 1] if index else {}
        known = _blocks(before, "tool_use", "id") if before.get("role") == "assistant" else []
        for call_id in _blocks(message, "tool_result", "tool_use_id"):
            if call_id not in known:
                refuse(
                    f"messages.{index}.content.0: unexpected `tool_use_id` found in "
                    f"`tool_result` blocks: {call_id}. Each `tool_result` block must have a "
                    "corresponding `tool_use` block in the previous message."
                )
    if _blocks(messages[-1], "tool_use", "id"):
        _missing(len(messages) - 1, _blocks(messages[-1], "tool_use", "id"))


def _answered(index: int, used: list[str], following: Any) -> None:
    content = following.get("content")
    leading = []
    for block in content if isinstance(content, list) else ():
        if block.get("type") != "tool_result":
            break
        leading.append(block["tool_use_id"])
    if len(set(leading)) < len(leading):
        refuse(
            f"messages.{index + 1}.content: each tool_use must have a single result. Found "
            "multiple `tool_result` blocks with the same id"
        )
    missing = [call_id for call_id in used if call_id not in leading]
    if missing:
        _missing(index, missing)


def _missing(index: int, ids: list[str]) -> None:
    refuse(
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: {', '.join(ids)}. Each `tool_use` block must have a corresponding "
        "`tool_result` block in the next message."
    )


def _thought_before_tools(messages: list[Any]) -> None:
    """With a thinking budget, the assistant's turn that led to the last tool results must begin
    with its thinking, and an answer can't be begun for the model."""
    if messages[-1]["role"] == "assistant":
        _expected(messages, len(messages) - 1)
        return
    start: int | None = None
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message["role"] == "user" and not _blocks(message, "tool_result", "tool_use_id"):
            break
        if message["role"] == "assistant":
            start = index
    if start is not None:
        _expected(messages, start)


def _expected(messages: list[Any], index: int) -> None:
    content = messages[index].get("content")
    kind = content[0].get("type") if isinstance(content, list) and content else "text"
    if kind not in ("thinking", "redacted_thinking"):
        refuse(
            f"messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but "
            f"found `{kind}`. When `thinking` is enabled, a final `assistant` message must start "
            "with a thinking block (preceding the lastmost set of `tool_use` and `tool_result` "
            "blocks)."
        )
