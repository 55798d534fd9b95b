"""``/admin/prompts``: prompts, their versions and their labels."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from gateway.http.deps import Admin, Gateway
from gateway.http.posted import posted
from gateway.services.prompts import (
    LabelRequest,
    PromptRequest,
    create_prompt,
    drop_label,
    list_prompts,
    set_label,
    show_prompt,
)
from gateway.services.shaped import shaped

router = APIRouter(prefix="/admin/prompts")

WantedPrompt = Annotated[PromptRequest, Depends(posted(shaped(PromptRequest)))]
WantedLabel = Annotated[LabelRequest, Depends(posted(shaped(LabelRequest)))]


@router.get("")
async def prompts(state: Gateway, admin: Admin) -> dict[str, Any]:
    """Every prompt with its versions and labels."""
    return {"prompts": list_prompts(state)}


@router.post("", status_code=201)
async def add_prompt(wanted: WantedPrompt, state: Gateway, admin: Admin) -> dict[str, Any]:
    """Make the next version of a prompt. It never changes again."""
    return await create_prompt(state, wanted)


@router.get("/{reference}")
async def prompt(reference: str, state: Gateway, admin: Admin) -> dict[str, Any]:
    """All versions of ``name``, or the content of ``name@version``."""
    return show_prompt(state, reference)


@router.put("/{name}/labels/{label}")
async def put_label(
    name: str, label: str, wanted: WantedLabel, state: Gateway, admin: Admin
) -> dict[str, Any]:
    """Let a label mean a version; whoever asks for the label gets it from the next call on."""
    return await set_label(state, name, label, wanted.version)


@router.delete("/{name}/labels/{label}")
async def delete_label(name: str, label: str, state: Gateway, admin: Admin) -> dict[str, Any]:
    """Delete a label, not the version."""
    return await drop_label(state, name, label)
