"""A conversation as this protocol wants it: user and assistant in turn, results first.

The rules, from the vendor's documentation and error texts: the first turn is the user's; turns
of one role in a row are one turn; every ``tool_use`` is answered by exactly one ``tool_result``
in the very next user turn, before anything else in it; no blank texts, no empty turns. A system
message amid the turns keeps its role where the model has it and a user turn (or a paused one of
the assistant) stands before it and no user turn after it; elsewhere it becomes a marked text of
the user's turn.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from adapters.canonical.facts import Facts
from adapters.canonical.pairing import check_results
from adapters.canonical.parts import Opaque, Refusal, Text
from adapters.canonical.record import record
from adapters.canonical.request import Message, Request
from adapters.dialects.anthropic_messages.blocks import BlockWriter
from adapters.dialects.anthropic_messages.notes import Notes
from adapters.wire.anthropic_messages import Block
from adapters.wire.names import lost_names
from adapters.wire.places import Place, Places, plain_text

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "tool": "user",
    "assistant": "assistant",
}

FOLDED = "<system-message>\n{}\n</system-message>"
"""How a system message reads inside a user's turn."""

OPENING = "(The conversation begins with the assistant.)"
"""The user's turn before a conversation that an assistant opens."""

THINKING = ("thinking", "redacted_thinking")
SPOKEN = ("text", "tool_use", *THINKING)
"""The blocks that a model's turn may end with on its own."""

Json = dict[str, Any]


@record(slots=True)
class Turn:
    """One message to be sent. ``source`` is the place of the caller's first message in it."""

    role: str
    source: str
    results: list[Block] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    extras: Json = field(default_factory=dict)

    @property
    def content(self) -> list[Block]:
        """All blocks, tool results first."""
        return self.results + self.blocks

    @property
    def is_paused(self) -> bool:
        """Whether the assistant was interrupted in the middle of a server tool's work: such a
        turn goes back as it is, to go on."""
        return self.role == "assistant" and self.blocks[-1]["type"] not in SPOKEN

    def calls(self) -> list[str]:
        """The ids of the tool calls in this turn."""
        return [block["id"] for block in self.blocks if block["type"] == "tool_use"]

    def message(self) -> Json:
        """The turn as the wire has it."""
        return {"role": self.role, "content": self.content, **self.extras}


@record(frozen=True, slots=True)
class Conversation:
    """``system`` blocks and the ``turns`` after them."""

    system: list[Block]
    turns: list[Turn]

    @property
    def prefilled(self) -> bool:
        """Whether the answer is to continue the assistant's own words."""
        return self.turns[-1].role == "assistant"

    def resumes_without_thinking(self) -> bool:
        """Whether the answer goes on after tool results, and the assistant did not think when
        it began that round of tool calls: then a thinking budget would be refused."""
        began: Turn | None = None
        for turn in reversed(self.turns):
            if turn.role == "user" and not turn.results:
                break
            if turn.role == "assistant":
                began = turn
        return began is not None and began.blocks[0]["type"] not in THINKING


def alternate(turns: list[Json]) -> bool:
    """Whether texts are turns as they stand: the user's and the assistant's by turns, the first
    and the last the user's, and none of them blank."""
    role = "user"
    for turn in turns:
        text = turn["content"]
        if turn["role"] != role or not text or text.isspace():
            return False
        role = "assistant" if role == "user" else "user"
    return role == "assistant"


def converse(request: Request, facts: Facts, notes: Notes) -> Conversation:
    """The whole conversation of ``request``.

    :raises Fault: ``unsupported`` or ``bad_request`` with the caller's path as ``param``.
    """
    continues = notes.own and "thread" in request.extras
    if not continues:
        check_results(request, notes.messages)
    lead = _leading(request.messages)
    places = Places(request.origin)
    writer = BlockWriter(notes, places.results)
    system = _system(request, lead, writer, places)
    turns = _Turns(facts, notes)
    for number, message in enumerate(request.messages[lead:], lead):
        text = plain_text(message)
        if text and not text.isspace() and ROLES[message.role] != "system":
            turns.add_text(ROLES[message.role], text, places.plain(number))
        else:
            turns.add(message, places.of(number, message), writer)
    done = turns.close()
    if not done:
        raise notes.reject("messages", "The conversation is empty. Send at least one user message.")
    if not continues:
        _check_pairs(done, notes)
    _check_ends(done, facts, notes)
    return Conversation(system, done)


def _leading(messages: tuple[Message, ...]) -> int:
    """How many messages at the start are instructions in plain text."""
    for number, message in enumerate(messages):
        if ROLES[message.role] != "system":
            return number
        if not all(isinstance(part, Text | Refusal) for part in message.parts):
            return number
    return len(messages)


def _system(request: Request, lead: int, writer: BlockWriter, places: Places) -> list[Block]:
    if not request.instructions and not lead:
        return []
    notes = writer.notes
    name = notes.name("instructions")
    written = [writer.write(text, f"{name}[{n}]") for n, text in enumerate(request.instructions)]
    for number, message in enumerate(request.messages[:lead]):
        where, paths = places.of(number, message)
        _message_extras(message, where, notes)
        written += map(writer.write, message.parts, paths)
    return [block for block in written if block is not None]


def _message_extras(message: Message, where: str, notes: Notes) -> Json:
    """A message's own fields, which only a caller of this protocol can have meant for it."""
    if message.name is not None:
        notes.drop(f"{where}.name")
    if notes.own:
        return dict(message.extras)
    for name in lost_names(notes.origin, message.extras, where):
        notes.drop(name)
    return {}


class _Turns:
    """Merges messages into turns as they come."""

    __slots__ = ("_facts", "_notes", "_system", "_turns")

    def __init__(self, facts: Facts, notes: Notes) -> None:
        self._facts = facts
        self._notes = notes
        self._turns: list[Turn] = []
        self._system: Turn | None = None
        """A system turn that waits for the user's turn to be over."""

    def add_text(self, role: str, text: str, where: str) -> None:
        """Take the caller's next message, which is a text and no more."""
        self._append(Turn(role, where, blocks=[{"type": "text", "text": text}]))

    def add(self, message: Message, place: Place, writer: BlockWriter) -> None:
        """Take the caller's next message, which stands at ``place``."""
        where = place.message
        extras = _message_extras(message, where, self._notes)
        turn = Turn(ROLES[message.role], where, extras=extras)
        for part, path in zip(message.parts, place.parts, strict=True):
            block = writer.write(part, path)
            if block is None:
                if turn.role == "user" and isinstance(part, Opaque):
                    raise self._notes.refuse(
                        path, "This model's protocol can't carry this kind of content part."
                    )
                continue
            (turn.results if block["type"] == "tool_result" else turn.blocks).append(block)
        if turn.role == "system":
            self._add_system(turn)
        elif turn.content:
            self._append(turn)
        elif turn.role == "user" and message.role == "user":
            raise self._notes.reject(where, "A user message has no content. Write some text.")

    def close(self) -> list[Turn]:
        """All turns, once every message has come."""
        self._place_system()
        turns = self._turns
        if turns and turns[0].role == "assistant" and not self._notes.own:
            opening = Turn("user", "", blocks=[{"type": "text", "text": OPENING}])
            turns.insert(0, opening)
            self._notes.inject(f"{self._notes.messages}[0]", OPENING)
        return turns

    def _append(self, turn: Turn) -> None:
        if turn.role == "assistant":
            self._place_system()
        last = self._turns[-1] if self._turns else None
        if last is None or last.role != turn.role:
            self._turns.append(turn)
        else:
            last.results += turn.results
            last.blocks += turn.blocks
            last.extras.update(turn.extras)
        if turn.role == "user" and self._system is not None:
            self._notes.adjust(
                self._system.source, "system message", "moved behind the user's turn"
            )

    def _add_system(self, turn: Turn) -> None:
        if not turn.content:
            return
        if not self._facts.can("mid_system"):
            self._fold(turn)
        elif self._system is None:
            self._system = turn
        else:
            self._system.blocks += turn.blocks
            self._system.extras.update(turn.extras)

    def _place_system(self) -> None:
        """Give the waiting system turn its place: behind a user's turn, or inside a new one."""
        turn, self._system = self._system, None
        if turn is None:
            return
        last = self._turns[-1] if self._turns else None
        if last is not None and (last.role == "user" or last.is_paused):
            self._turns.append(turn)
        else:
            self._fold(turn)

    def _fold(self, turn: Turn) -> None:
        where = turn.source
        self._notes.adjust(f"{where}.role", "system", "user")
        folded = Turn("user", turn.source)
        for block in turn.blocks:
            if block["type"] == "text":
                folded.blocks.append({**block, "text": FOLDED.format(block["text"])})
            else:
                self._notes.drop(f"{where}.{block['type']}")
        if folded.blocks:
            self._append(folded)


def _check_pairs(turns: list[Turn], notes: Notes) -> None:
    """Every call answered once in the next user turn, and nothing answered that was not asked."""
    spoken = [turn for turn in turns if turn.role != "system"]
    for turn, following in zip(spoken, [*spoken[1:], None], strict=True):
        if turn.role != "assistant":
            continue
        results = [] if following is None else following.results
        answered = [block["tool_use_id"] for block in results]
        if sorted(answered) != sorted(turn.calls()):
            raise notes.reject(
                turn.source,
                "Every tool call of an assistant message needs exactly one tool result in the "
                "next turn, and no result may answer an older call.",
            )


def _check_ends(turns: list[Turn], facts: Facts, notes: Notes) -> None:
    """A conversation ends with the user's turn; with the assistant's only to be continued."""
    last = turns[-1]
    if last.role != "assistant" or last.is_paused:
        return
    ending = last.blocks[-1]
    if not facts.can("prefill") and not notes.own:
        raise notes.refuse(
            last.source,
            "This model can't continue an assistant message. End with a user message.",
        )
    if ending["type"] == "text" and ending["text"] != ending["text"].rstrip():
        ending["text"] = ending["text"].rstrip()
        notes.adjust(f"{last.source}.content", "trailing white space", "left out")
