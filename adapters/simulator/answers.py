"""The answers that a model's name can ask for; rows of the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from adapters.simulator import mind
from adapters.simulator.words import Answer, Ask, Call, Refuse, Say
from adapters.wire.json import dumps

Args = Mapping[str, str]
MAX_PIECES = 100_000


def echo(ask: Ask, args: Args) -> Answer:
    """The last user text, and nothing else."""
    return Answer((Say(ask.prompt),))


def say(ask: Ask, args: Args) -> Answer:
    """The text in the name."""
    return Answer((Say(args["TEXT"].replace("-", " ")),))


def recite(ask: Ask, args: Args) -> Answer:
    """The conversation as the provider saw it."""
    return Answer((Say("\n".join(f"{turn.role}: {turn.text}" for turn in ask.turns)),))


def sim_tool(ask: Ask, args: Args) -> Answer:
    """Tools whenever there are some."""
    tools = mind.wanted(ask, eager=True)
    if tools:
        return Answer(tuple(mind.call(tool, ask.prompt) for tool in tools))
    return Answer((Say(mind.content(ask)),))


def parallel(ask: Ask, args: Args) -> Answer:
    """N calls at once: the tools given, in their order, round and round."""
    if not ask.tools or ask.results or ask.choice == "none":
        return Answer((Say(mind.content(ask)),))
    tools = [ask.tools[n % len(ask.tools)] for n in range(_count(args))]
    return Answer(tuple(mind.call(tool, ask.prompt) for tool in tools))


def talk_and_call(ask: Ask, args: Args) -> Answer:
    """Text before the calls."""
    answer = sim_tool(ask, args)
    if answer.ending == "tools":
        return replace(answer, parts=(Say("Let me look that up. "), *answer.parts))
    return answer


def bad_arguments(ask: Ask, args: Args) -> Answer:
    """Calls whose arguments are cut JSON; sound ones once an error came back."""
    if any(result.is_error for result in ask.results):
        return Answer(tuple(mind.call(tool, ask.prompt) for tool in ask.tools[:1]))
    return _spoiled(ask, lambda call: replace(call, arguments=call.arguments[:-1] + ',"'))


def unknown_tool(ask: Ask, args: Args) -> Answer:
    """A call of a tool that nobody offered."""
    return _spoiled(ask, lambda call: replace(call, name="no_such_tool"))


def _spoiled(ask: Ask, spoil: Callable[[Call], Call]) -> Answer:
    answer = sim_tool(ask, {})
    parts = [spoil(part) if isinstance(part, Call) else part for part in answer.parts]
    return replace(answer, parts=tuple(parts))


def silent(ask: Ask, args: Args) -> Answer:
    """No content at all, and yet a proper end."""
    return Answer()


def refusal(ask: Ask, args: Args) -> Answer:
    """A refusal in the vendor's own form."""
    return Answer((Refuse("I can't help with that."),))


def paced(ask: Ask, args: Args) -> Answer:
    """N pieces, one every MS milliseconds."""
    return replace(burst(ask, args), pace=float(args["MS"]) / 1000)


def burst(ask: Ask, args: Args) -> Answer:
    """N pieces at once."""
    cut = tuple(f"w{n} " for n in range(_count(args)))
    return Answer((Say("".join(cut), cut),))


def weigh(ask: Ask, args: Args) -> Answer:
    """One text of KB kilobytes."""
    return Answer((Say("0123456 " * (128 * min(int(args["KB"]), 16 * 1024))),))


def _count(args: Args) -> int:
    return min(int(args["N"]), MAX_PIECES)


_INVALID = {"the_schema": "does not know this", "answer": 42}


def invalid_then_valid(ask: Ask, args: Args) -> Answer:
    """JSON that breaks the schema in the first N answers of a conversation, then a good one."""
    if ask.turn < int(args["N"]):
        return Answer((Say(dumps(_INVALID).decode()),))
    return Answer((Say(mind.content(ask)),))


def always_invalid(ask: Ask, args: Args) -> Answer:
    """JSON that never fits the schema."""
    return Answer((Say(dumps(_INVALID).decode()),))


def _quotes(text: str) -> str:
    out: list[str] = []
    for char in text:
        opening = sum(one in "“”" for one in out) % 2 == 0
        out.append(("“" if opening else "”") if char == '"' else char)
    return "".join(out)


def _python(text: str) -> str:
    for one, other in (("true", "True"), ("false", "False"), ("null", "None")):
        text = text.replace(one, other)
    return text if "None" in text or "True" in text else text[:-1] + ', "extra": None}'


DIRT: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "fence": ("in a Markdown fence", lambda text: f"```json\n{text}\n```"),
    "prose": ("with prose around", lambda text: f"Sure, here it is:\n{text}\nAnything else?"),
    "think": ("behind thinking tags", lambda text: f"<think>A {{ brace.</think>{text}"),
    "trailing-comma": ("with a trailing comma", lambda text: text[:-1] + "," + text[-1:]),
    "missing-comma": ("without its first comma", lambda text: text.replace(",", " ", 1)),
    "single-quotes": ("in single quotes", lambda text: text.replace('"', "'")),
    "smart-quotes": ("in typographic quotes", _quotes),
    "bare-keys": ("with bare keys", lambda text: text.replace('{"', "{", 1).replace('":', ":", 1)),
    "python": ("with Python literals", _python),
    "comment": ("with a comment", lambda text: "// the answer\n" + text),
    "nan": ("with NaN for its last value", lambda text: text[:-1].rpartition(":")[0] + ":NaN}"),
    "truncated": ("cut, but said to be whole", lambda text: text[: max(len(text) * 2 // 3, 1)]),
    "twice": ("twice over", lambda text: text + text),
    "markup": ("with stray closing markup", lambda text: f"{text}</answer>"),
    "empty": ("as nothing at all", lambda text: ""),
}
"""How a model spoils JSON: the word's end, what it means, and the spoiling."""


def dirty(ask: Ask, args: Args) -> Answer:
    """The right JSON, spoiled; it stays spoiled when asked again."""
    return Answer((Say(DIRT[args["DIRT"]][1](_json(ask))),))


def once_dirty(ask: Ask, args: Args) -> Answer:
    """The right JSON, spoiled until the conversation has an answer."""
    return dirty(ask, args) if ask.turn == 0 else Answer((Say(_json(ask)),))


def _json(ask: Ask) -> str:
    return mind.content(replace(ask, json_object=True))
