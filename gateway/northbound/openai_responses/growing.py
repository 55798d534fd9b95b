"""Output items under way: one class a kind of item, each with the same few moments.

An item opens, its parts open, grow, are annotated and end, and at last the item closes; every
moment gives the Responses events that tell it. What is whole so far is :meth:`Growing.object`.
Must not know the other items, nor the answer around them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from adapters.canonical.parts import Opaque, Part, Refusal, Text, Thinking, ToolCall
from adapters.wire.openai_responses import DIALECT, output_content, reasoning_item
from gateway.northbound.openai_responses.seal import seal

Told = tuple[str, dict[str, Any]]
"""The type of a Responses event and its other fields, without the sequence number."""


class Growing(ABC):
    """One output item. ``count`` is the number of its parts, ``growing`` of those not ended;
    ``open`` says whether its end is still to be told."""

    __slots__ = ("_id", "_where", "count", "growing", "open")

    def __init__(self, position: int, item_id: str) -> None:
        self._id = item_id
        self._where = {"item_id": item_id, "output_index": position}
        self.count = 0
        self.growing = 0
        self.open = True

    @abstractmethod
    def object(self, status: str) -> dict[str, Any]:
        """The item as far as it has come."""

    def open_item(self) -> Iterable[Told]:
        """The item begins."""
        return self._item("response.output_item.added", "in_progress")

    def open_part(self, head: Part) -> Iterable[Told]:
        """The next part begins with ``head``."""
        self.count += 1
        self.growing += 1
        return ()

    def more(self, number: int, text: str) -> Iterable[Told]:
        """More text for part (or section) ``number``."""
        return ()

    def note(self, number: int, key: str, value: Any) -> Iterable[Told]:
        """Something learned about part ``number``."""
        return ()

    def end_part(self, number: int) -> Iterable[Told]:
        """Part ``number`` is complete; what that says waits for :meth:`close` where the item is
        the part."""
        self.growing -= 1
        return ()

    def close(self, status: str) -> Iterable[Told]:
        """The item ends."""
        self.open = False
        return self._item("response.output_item.done", status)

    def _item(self, event: str, status: str) -> list[Told]:
        index = self._where["output_index"]
        return [(event, {"output_index": index, "item": self.object(status)})]

    def _event(self, name: str, **fields: Any) -> Told:
        return f"response.{name}", {**self._where, **fields}


class Whole(Growing):
    """An item of the same dialect that the canonical words do not know."""

    __slots__ = ("_data",)

    def __init__(self, position: int, mark: str, head: Opaque) -> None:
        super().__init__(position, str(head.data.get("id") or mark))
        self._data: Mapping[str, Any] = head.data

    def object(self, status: str) -> dict[str, Any]:
        return dict(self._data)

    def note(self, number: int, key: str, value: Any) -> Iterable[Told]:
        if key == "data":
            self._data = value
        return ()


class Message(Growing):
    """Words of the assistant: texts, refusals, and content that only this dialect knows."""

    __slots__ = ("_around", "_native", "_parts")

    def __init__(self, position: int, mark: str, head: Part, native: bool) -> None:
        self._native = native
        self._around = _around(head) if native else {}
        super().__init__(position, str(self._around.get("id") or f"msg_{mark}"))
        self._parts: list[_Content] = []

    def takes(self, head: Part) -> bool:
        """Whether ``head`` stands in this message too."""
        if isinstance(head, Opaque):
            return head.dialect == DIALECT and head.type.startswith("content:")
        if not isinstance(head, Text | Refusal):
            return False
        return not self._native or _around(head) in ({}, self._around)

    def object(self, status: str) -> dict[str, Any]:
        rest = {name: value for name, value in self._around.items() if name != "id"}
        content = [part.object() for part in self._parts]
        head = {"id": self._id, "type": "message", "status": status, "role": "assistant"}
        return {**head, "content": content, **rest}

    def open_part(self, head: Part) -> Iterable[Told]:
        super().open_part(head)
        part = _Content(head, self._native)
        number = len(self._parts)
        self._parts.append(part)
        return [self._event("content_part.added", content_index=number, part=part.object())]

    def more(self, number: int, text: str) -> Iterable[Told]:
        part = self._parts[number]
        part.texts.append(text)
        fields: dict[str, Any] = {"content_index": number, "delta": text}
        if part.kind == "output_text":
            fields["logprobs"] = []
        return [self._event(f"{part.kind}.delta", **fields)]

    def note(self, number: int, key: str, value: Any) -> Iterable[Told]:
        part = self._parts[number]
        if key == "citation":
            place = len(part.citations)
            part.citations.append(value)
            yield self._event(
                "output_text.annotation.added",
                content_index=number,
                annotation_index=place,
                annotation=annotation(value, len("".join(part.texts))),
            )
        elif key == "logprobs":
            part.logprobs.extend(value)
        elif key == "data" and isinstance(part.head, Opaque):
            part.head = replace(part.head, data=value)

    def end_part(self, number: int) -> Iterable[Told]:
        super().end_part(number)
        part = self._parts[number]
        whole = part.object()
        if part.kind in ("output_text", "refusal"):
            field = "text" if part.kind == "output_text" else "refusal"
            fields = {field: whole[field]}
            if part.kind == "output_text":
                fields["logprobs"] = whole["logprobs"]
            yield self._event(f"{part.kind}.done", content_index=number, **fields)
        yield self._event("content_part.done", content_index=number, part=whole)


class _Content:
    """One content part of a message."""

    __slots__ = ("citations", "extras", "head", "kind", "logprobs", "texts")

    def __init__(self, head: Part, native: bool) -> None:
        self.head = head
        self.kind = {Text: "output_text", Refusal: "refusal"}.get(type(head), "")
        self.texts: list[str] = []
        self.citations: list[Any] = list(head.citations) if isinstance(head, Text) else []
        extras = getattr(head, "extras", {}) if native else {}
        self.extras = {name: value for name, value in extras.items() if name != "item"}
        self.logprobs: list[Any] = []

    def object(self) -> dict[str, Any]:
        head = self.head
        if isinstance(head, Opaque):
            return dict(head.data)
        text = "".join(self.texts)
        if isinstance(head, Refusal):
            return {**output_content(replace(head, text=text)), **self.extras}
        content = {**output_content(Text(text)), **self.extras}
        if self.kind:
            end = len(content["text"])
            content["annotations"] = [annotation(cited, end) for cited in self.citations]
            content["logprobs"] = list(self.logprobs)
        return content


class Call(Growing):
    """A call of a function or of a custom tool; the item is its only part."""

    __slots__ = ("_extras", "_head", "_texts")

    def __init__(self, position: int, mark: str, head: ToolCall, native: bool) -> None:
        prefix = "ctc" if head.kind == "custom" else "fc"
        extras = dict(head.extras) if native else {}
        own_id = extras.pop("id", None)
        super().__init__(position, str(own_id or f"{prefix}_{mark}"))
        self._head = head
        self._extras = extras
        self._texts: list[str] = []

    @property
    def _is_custom(self) -> bool:
        return self._head.kind == "custom"

    def _text(self) -> str:
        return "".join(self._texts)

    def object(self, status: str) -> dict[str, Any]:
        kind, field = (
            ("custom_tool_call", "input") if self._is_custom else ("function_call", "arguments")
        )
        head = self._head
        item = {"id": self._id, "type": kind, "status": status, "call_id": head.call_id}
        return {**item, "name": head.name, field: self._text(), **self._extras}

    def more(self, number: int, text: str) -> Iterable[Told]:
        self._texts.append(text)
        return [self._event(f"{self._stream}.delta", delta=text)]

    @property
    def _stream(self) -> str:
        return "custom_tool_call_input" if self._is_custom else "function_call_arguments"

    def note(self, number: int, key: str, value: Any) -> Iterable[Told]:
        if key == "extras" and self._extras:
            self._extras.update({n: v for n, v in value.items() if n != "id"})
        return ()

    def close(self, status: str) -> Iterable[Told]:
        # A call without arguments has the empty object: clients parse what they get.
        if not self._texts and not self._is_custom and status == "completed":
            yield from self.more(0, "{}")
        if self._is_custom:
            yield self._event(f"{self._stream}.done", input=self._text())
        else:
            yield self._event(f"{self._stream}.done", arguments=self._text())
        yield from super().close(status)


class Reasoning(Growing):
    """Reasoning, shown as summary sections; raw text stays raw only in its own dialect.

    Seals of other protocols travel in ``encrypted_content`` (:mod:`.seal`).
    """

    __slots__ = ("_begun", "_head", "_native", "_sections")

    def __init__(self, position: int, mark: str, head: Thinking, native: bool) -> None:
        own_id = head.id if native else None
        super().__init__(position, str(own_id or f"rs_{mark}"))
        self._head = head
        self._native = native
        self._sections: dict[int, list[str]] = {}
        self._begun: list[int] = []

    @property
    def _is_raw(self) -> bool:
        return self._native and self._head.summary is None

    def _text(self, section: int) -> str:
        return "".join(self._sections[section])

    def object(self, status: str) -> dict[str, Any]:
        texts = tuple(self._text(section) for section in sorted(self._sections))
        head = self._head
        part = replace(head, id=self._id, text="".join(texts), summary=texts)
        if self._is_raw:
            part = replace(part, summary=None)
        elif not self._native:
            worth = head.dialect is not None and status != "in_progress"
            part = replace(part, sealed=seal(head) if worth else None, extras={})
        item = reasoning_item(part)
        return {"id": self._id, **item}

    def more(self, number: int, text: str) -> Iterable[Told]:
        section = 0 if self._is_raw or self._head.summary is None else number
        if section not in self._sections:
            yield from self._end_section()
            self._sections[section] = []
            yield from self._open_section(section)
        self._sections[section].append(text)
        if not text:
            return  # an empty section is a section all the same
        if self._is_raw:
            yield self._event("reasoning_text.delta", content_index=0, delta=text)
        else:
            yield self._event("reasoning_summary_text.delta", summary_index=section, delta=text)

    def _open_section(self, section: int) -> Iterator[Told]:
        self._begun.append(section)
        if self._is_raw:
            part = {"type": "reasoning_text", "text": ""}
            yield self._event("content_part.added", content_index=0, part=part)
        else:
            part = {"type": "summary_text", "text": ""}
            yield self._event("reasoning_summary_part.added", summary_index=section, part=part)

    def _end_section(self) -> Iterator[Told]:
        if not self._begun:
            return
        section = self._begun.pop()
        text = self._text(section)
        if self._is_raw:
            part = {"type": "reasoning_text", "text": text}
            yield self._event("reasoning_text.done", content_index=0, text=text)
            yield self._event("content_part.done", content_index=0, part=part)
        else:
            part = {"type": "summary_text", "text": text}
            yield self._event("reasoning_summary_text.done", summary_index=section, text=text)
            yield self._event("reasoning_summary_part.done", summary_index=section, part=part)

    def note(self, number: int, key: str, value: Any) -> Iterable[Told]:
        if key in ("signature", "sealed"):
            self._head = replace(self._head, **{key: value})
        elif key == "extras":
            self._head = replace(self._head, extras={**self._head.extras, **value})
        return ()

    def end_part(self, number: int) -> Iterable[Told]:
        super().end_part(number)
        return self._end_section()


def _around(head: Part) -> dict[str, Any]:
    extras = getattr(head, "extras", {})
    around = extras.get("item") if isinstance(extras, Mapping) else None
    return dict(around) if isinstance(around, Mapping) else {}


def annotation(citation: Mapping[str, Any], end: int) -> Mapping[str, Any]:
    """A citation as an annotation of this protocol: unchanged if it is one, a URL citation over
    the text so far if it names a web page, whole if it is another protocol's own."""
    kind = citation.get("type")
    inner = citation.get("url_citation")
    place = {"start_index": 0, "end_index": end}
    if isinstance(inner, Mapping):
        # chat nests what this protocol keeps flat, and some of its servers leave places out
        return {"type": "url_citation", "title": "", **place, **inner}
    url = citation.get("url")
    if not isinstance(url, str) or kind == "url_citation":
        return citation
    title = citation.get("title")
    titled = {"title": title if isinstance(title, str) else ""}
    return {"type": "url_citation", "url": url, **titled, **place}
