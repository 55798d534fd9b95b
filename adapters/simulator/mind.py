"""The simulated model: an ask in, an answer out, always the same for the same ask.

It repeats the prompt, calls tools when the prompt is about them, fills JSON schemas, thinks
when told to, and looks at images. Knows no protocol.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from adapters.simulator.arguments import instance
from adapters.simulator.meter import part_tokens
from adapters.simulator.words import Answer, Ask, Call, Part, Refuse, Say, Think, ToolSpec
from adapters.wire.json import dumps, loads_exact

_VERBS = frozenset(
    {"a", "an", "the", "get", "set", "find", "search", "list", "read", "write", "run", "call"}
    | {"make", "do", "fetch", "create", "update", "delete", "use", "tool", "function", "of"}
    | {"for", "to", "by", "and", "or", "with", "my"}
)
"""What says nothing about which tool is meant."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_KEYS = re.compile(r"[\"'`](\w{1,40})[\"'`]")
_SPEAKS_OF_KEYS = re.compile(r"\b(?:keys?|fields?|propert(?:y|ies))\b", re.IGNORECASE)
_DECODER = json.JSONDecoder()
_WANTS_OBJECT = re.compile(r"\b(one|single) JSON object\b")
_MOST_BRACES = 16
"""Places in one text at which a schema is looked for."""


def reply(ask: Ask) -> Answer:
    """What a sensible model would do with ``ask``."""
    if tools := wanted(ask):
        return Answer(tuple(call(tool, ask.prompt) for tool in tools))
    return Answer((Say(content(ask)),))


def content(ask: Ask) -> str:
    """The text of the answer: JSON if JSON was asked, else results, media, or the prompt."""
    schema, prompt = ask.schema, ask.prompt
    if schema is None:
        schema, prompt = _schema_in_words(ask)
    if schema is not None:
        return dumps(instance(schema, prompt)).decode()
    if ask.json_object or _object_in_words(ask):
        keys = _KEYS.findall(ask.prompt) if _SPEAKS_OF_KEYS.search(ask.prompt) else ["echo"]
        return dumps(dict.fromkeys(keys or ["echo"], ask.prompt)).decode()
    lines = [
        f"The tool {one.name} {'failed' if one.is_error else 'says'}: {one.text}"
        for one in ask.results
    ]
    lines += [f"I see {_medium(one.kind, one.mime, one.size)}." for one in ask.media]
    if not ask.results:
        lines.append(ask.prompt)
    return "\n".join(line for line in lines if line)


def _schema_in_words(ask: Ask) -> tuple[Mapping[str, Any] | None, str]:
    """A JSON schema that stands in the instructions or in the prompt, as it does for models
    without a native output format; and the prompt without it."""
    spoken = [turn.text for turn in ask.turns if turn.role in ("system", "developer")]
    for text in (ask.prompt, *spoken):
        for start in islice((found.start() for found in re.finditer(r"\{", text)), _MOST_BRACES):
            try:
                value, end = _DECODER.raw_decode(text, start)
            except ValueError:
                continue
            if isinstance(value, dict) and _is_schema(value):
                return value, ask.prompt.replace(text[start:end], " ")
    return None, ask.prompt


def _is_schema(value: Mapping[str, Any]) -> bool:
    """Whether an object in a text looks like a JSON schema."""
    known = any(key in value for key in ("properties", "$defs", "anyOf", "oneOf"))
    return known or value.get("type") in ("array", "string", "integer", "number", "boolean")


def _object_in_words(ask: Ask) -> bool:
    """Whether the instructions want an object without saying which, as a caller's JSON mode
    reaches models that have none."""
    spoken = [turn.text for turn in ask.turns if turn.role in ("system", "developer")]
    return any(_WANTS_OBJECT.search(text) for text in spoken)


def _medium(kind: str, mime: str, size: int | None) -> str:
    article = "an" if kind[:1] in "aeiou" else "a"
    if size is None:
        return f"{article} {kind} at {mime}"
    return f"{article} {mime} of {size} bytes"


def thought(ask: Ask) -> Think:
    """The reasoning before an answer."""
    return Think(f"The prompt has {len(ask.prompt)} characters. I answer it in one step.")


def wanted(ask: Ask, *, eager: bool = False) -> tuple[ToolSpec, ...]:
    """The tools to call now, in the prompt's order.

    A tool is wanted if it is forced, or if the prompt has its name or the telling words of its
    name (``weather`` for ``get_weather``). ``eager`` calls the likeliest tool in any case. A
    tool that was called since the prompt is not called again; without leave for parallel calls
    there is one at a time, and the next after its result.
    """
    if not ask.tools or ask.choice == "none":
        return ()
    if ask.choice.startswith("="):
        return tuple(tool for tool in ask.tools if tool.name == ask.choice[1:])[:1]
    forced = ask.choice == "required"
    asked = sorted(
        (tool for tool in ask.tools if _place(tool, ask.prompt) >= 0),
        key=lambda tool: _place(tool, ask.prompt),
    )
    if not asked and (forced or (eager and not ask.results)):
        asked = [max(ask.tools, key=lambda tool: _overlap(tool, ask.prompt))]
    if not forced:
        asked = [tool for tool in asked if tool.name not in ask.called]
    return tuple(asked if ask.parallel else asked[:1])


def _place(tool: ToolSpec, prompt: str) -> int:
    """Where the prompt speaks of the tool; -1 if it does not."""
    named = re.search(rf"(?<!\w){re.escape(tool.name)}(?!\w)", prompt)
    if named is not None:
        return named.start()
    telling = _telling(tool.name)
    places = [prompt.lower().find(word) for word in telling]
    return max(places) if places and min(places) >= 0 and len(tool.name) > 4 else -1


def _telling(name: str) -> list[str]:
    words = [word.lower() for word in _WORDS.findall(name)]
    return [word for word in words if word not in _VERBS] if len(words) > 1 else []


def _overlap(tool: ToolSpec, prompt: str) -> int:
    lower = prompt.lower()
    return sum(word.lower() in lower for word in _WORDS.findall(tool.name))


def call(tool: ToolSpec, prompt: str) -> Call:
    """A call with arguments from the prompt: the JSON behind the tool's name if there is some."""
    if tool.free_form:
        return Call(tool.name, prompt, free_form=True)
    given = _given(tool.name, prompt)
    value = given if given is not None else instance(tool.schema, _without(tool.name, prompt))
    return Call(tool.name, dumps(value if isinstance(value, dict) else {}).decode())


def _given(name: str, prompt: str) -> dict[str, object] | None:
    """The JSON object right behind the tool's name, as in ``add {"a": 1}``."""
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)[^\w{{\n]*(?:with\s+)?(?=\{{)", prompt)
    if found is None:
        return None
    depth = 0
    for place in range(found.end(), len(prompt)):
        depth += {"{": 1, "}": -1}.get(prompt[place], 0)
        if depth == 0:
            try:
                value = loads_exact(prompt[found.end() : place + 1].encode())
            except ValueError:
                return None
            return value if isinstance(value, dict) else None
    return None


def _without(name: str, prompt: str) -> str:
    """The prompt without the tool's name: what is in the name is no argument."""
    return re.sub(rf"[\"'`]?(?<!\w){re.escape(name)}(?!\w)[\"'`]?", " ", prompt)


def bounded(answer: Answer, ask: Ask) -> Answer:
    """``answer`` cut at the ask's stop sequences and token limit."""
    answer = _stopped(answer, ask.stops)
    if ask.limit is None:
        return answer
    parts: list[Part] = []
    left = ask.limit
    for part in answer.parts:
        size = part_tokens(part)
        if size > left:
            if left > 0:
                parts.append(shortened(part, left * 4))
            return replace(answer, parts=tuple(parts), stop="length")
        parts.append(part)
        left -= size
    return answer


def _stopped(answer: Answer, stops: tuple[str, ...]) -> Answer:
    for number, part in enumerate(answer.parts):
        if not isinstance(part, Say):
            continue
        places = [(part.text.find(stop), stop) for stop in stops if stop in part.text]
        if places:
            place, stop = min(places)
            parts = (*answer.parts[:number], Say(part.text[:place]))
            return replace(answer, parts=parts, stop="sequence", sequence=stop)
    return answer


def shortened(part: Part, size: int) -> Part:
    """``part`` with at most ``size`` bytes of text or arguments."""
    match part:
        case Say(text=text):
            return Say(_head(text, size))
        case Think(text=text):
            return replace(part, text=_head(text, size))
        case Refuse(text=text):
            return Refuse(_head(text, size))
        case Call(arguments=arguments):
            return replace(part, arguments=_head(arguments, max(size - len(part.name), 0)))


def _head(text: str, size: int) -> str:
    return text.encode()[:size].decode("utf-8", "ignore")
