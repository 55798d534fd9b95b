"""``/v1/conversations`` and the listings of kept items: bodies in, objects out.

Every item goes through the same shapes as ``input`` of a response does. Must not know where
anything is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Required

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from adapters.canonical.faults import Fault
from gateway.northbound.base import DEFAULT_LIMITS, Limits
from gateway.northbound.body import read_object, validated
from gateway.northbound.openai_responses.kept import REFERENCE, kind_of
from gateway.northbound.openai_responses.shapes import FastList, Item, MetadataKey, MetadataValue

Json = Mapping[str, Any]

MAX_NEW = 20
"""Items that one request may add, as OpenAI has it."""

Metadata = Annotated[dict[MetadataKey, MetadataValue], Field(max_length=16)]
_STRICT = with_config(ConfigDict(extra="forbid", strict=True, defer_build=True))


@_STRICT
class NewConversation(TypedDict, total=False):
    """The body of ``POST /v1/conversations``."""

    items: FastList[Item] | None
    metadata: Metadata | None


@_STRICT
class ChangedConversation(TypedDict, total=False):
    """The body of ``POST /v1/conversations/{id}``."""

    metadata: Required[Metadata | None]


@_STRICT
class NewItems(TypedDict, total=False):
    """The body of ``POST /v1/conversations/{id}/items``."""

    items: Required[FastList[Item]]


_NEW = TypeAdapter(NewConversation)
_CHANGED = TypeAdapter(ChangedConversation)
_ITEMS = TypeAdapter(NewItems)


class Page(BaseModel):
    """Which part of a listing is asked for: ``after`` is the id of the last item seen."""

    model_config = ConfigDict(extra="ignore")

    limit: int = Field(default=20, ge=1, le=100)
    order: Literal["asc", "desc"] = "desc"
    after: str | None = None


def parse_new(body: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[list[Json], Json]:
    """Items and metadata of a new conversation; an empty body begins an empty one.

    :raises Fault: ``bad_request`` with ``param``.
    """
    given = validated(_NEW, read_object(body or b"{}", limits))
    return _new_items(given.get("items") or []), given.get("metadata") or {}


def parse_change(body: bytes, limits: Limits = DEFAULT_LIMITS) -> Json:
    """The metadata that a conversation is to have.

    :raises Fault: ``bad_request`` with ``param``.
    """
    metadata: Json = validated(_CHANGED, read_object(body, limits))["metadata"] or {}
    return metadata


def parse_items(body: bytes, limits: Limits = DEFAULT_LIMITS) -> list[Json]:
    """Items for the end of a conversation.

    :raises Fault: ``bad_request`` with ``param``.
    """
    return _new_items(validated(_ITEMS, read_object(body, limits))["items"])


def _new_items(items: list[Json]) -> list[Json]:
    if len(items) > MAX_NEW:
        raise Fault("bad_request", f"items: at most {MAX_NEW} at a time.", param="items")
    for number, item in enumerate(items):
        if kind_of(item) == REFERENCE:
            where = f"items[{number}]"
            raise Fault("bad_request", f"{where}: send the item itself.", param=where)
    return items


def conversation_object(conversation_id: str, created_at: float, metadata: Json) -> dict[str, Any]:
    """A ``conversation``."""
    return {
        "id": conversation_id,
        "object": "conversation",
        "created_at": int(created_at),
        "metadata": metadata,
    }


def deleted_object(deleted_id: str, kind: Literal["response", "conversation.deleted"]) -> Json:
    """What says that something is gone."""
    return {"id": deleted_id, "object": kind, "deleted": True}


def item_list(items: Sequence[Json], page: Page) -> dict[str, Any]:
    """One page of ``items``, which are whole and oldest first. What was sent again under its id is
    listed once: a page that began behind the second would begin behind the first.

    :raises Fault: ``bad_request`` where ``after`` names none of them.
    """
    once: dict[str, Json] = {}
    for item in items:
        once.setdefault(item["id"], item)
    ordered = list(once.values()) if page.order == "asc" else list(reversed(once.values()))
    if page.after is not None:
        places = [place for place, item in enumerate(ordered) if item["id"] == page.after]
        if not places:
            raise Fault("bad_request", "after: no item of this id is in the list.", param="after")
        ordered = ordered[places[0] + 1 :]
    shown = ordered[: page.limit]
    return whole_list(shown, more=len(ordered) > page.limit)


def whole_list(items: Sequence[Json], *, more: bool = False) -> dict[str, Any]:
    """A ``list`` object around ``items``."""
    return {
        "object": "list",
        "data": list(items),
        "first_id": items[0]["id"] if items else None,
        "last_id": items[-1]["id"] if items else None,
        "has_more": more,
    }
