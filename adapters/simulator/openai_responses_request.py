"""OpenAI Responses from the provider's side: reading the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.simulator.meter import tokens
from adapters.simulator.reading import Conversation, data_url
from adapters.simulator.seal import unseal
from adapters.simulator.voice import argument_text
from adapters.simulator.words import Ask, Body, Media, ToolSpec


def read(body: Body) -> Ask:
    """What is asked."""
    talk = Conversation()
    if body.get("instructions"):
        talk.say("system", body["instructions"])
    given = body.get("input")
    if isinstance(given, str):
        talk.say("user", given)
    else:
        for item in given or ():
            _hear(talk, item)
    tools = tuple(_tools(body.get("tools") or ()))
    output = (body.get("text") or {}).get("format") or {}
    reasoning = body.get("reasoning") or {}
    key = body.get("prompt_cache_key")
    count = talk.tokens + sum(tokens(argument_text(tool.schema)) for tool in tools)
    return Ask(
        model=body["model"],
        stream=bool(body.get("stream")),
        tools=tools,
        choice=_choice(body.get("tool_choice")),
        parallel=body.get("parallel_tool_calls") is not False,
        schema=output.get("schema") if output.get("type") == "json_schema" else None,
        json_object=output.get("type") == "json_object",
        thinks=_thinks(reasoning),
        limit=body.get("max_output_tokens"),
        tokens=max(count, 1),
        cached=((f"responses:{key}", count, 0),) if key else (),
        **talk.heard(),
    )


def _thinks(reasoning: Mapping[str, Any]) -> bool:
    if reasoning.get("effort") in ("none", "minimal"):
        return False
    return reasoning.get("effort") is not None or reasoning.get("summary") is not None


def _hear(talk: Conversation, item: Mapping[str, Any]) -> None:
    kind = item.get("type", "message")
    if kind == "message":
        text, media = _content(item["content"])
        talk.say(item["role"], text, media)
    elif kind == "function_call":
        talk.call(item["call_id"], item["name"], item["arguments"])
    elif kind == "custom_tool_call":
        talk.call(item["call_id"], item["name"], item["input"])
    elif kind in ("function_call_output", "custom_tool_call_output"):
        text, media = _content(item["output"])
        talk.result(item["call_id"], text, media)
    elif kind == "reasoning":
        talk.tokens += tokens(unseal(item.get("encrypted_content")) or "")


def _content(content: Any) -> tuple[str, list[Media]]:
    if isinstance(content, str):
        return content, []
    texts, media = [], []
    for part in content:
        kind = part["type"]
        if kind in ("input_text", "output_text"):
            texts.append(part["text"])
        elif kind == "refusal":
            texts.append(part["refusal"])
        elif kind == "input_image":
            media.append(data_url("image", part.get("image_url") or part["file_id"]))
        elif kind == "input_file":
            source = part.get("file_data") or part.get("file_url") or part["file_id"]
            media.append(data_url("file", source))
        else:
            sound = part["input_audio"]
            media.append(data_url("audio", f"data:audio/{sound['format']};base64,{sound['data']}"))
    return "\n".join(texts), media


def _tools(tools: Any) -> list[ToolSpec]:
    """The callable tools; a hosted tool (web search and such) is never called here."""
    specs = []
    for tool in tools:
        if tool["type"] == "function":
            specs.append(ToolSpec(tool["name"], tool.get("parameters") or {}))
        elif tool["type"] == "custom":
            specs.append(ToolSpec(tool["name"], {}, free_form=True))
    return specs


def _choice(choice: Any) -> str:
    if choice is None or isinstance(choice, str):
        return choice or "auto"
    return f"={choice['name']}" if "name" in choice else "auto"
