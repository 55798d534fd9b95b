"""Deleting what somebody has left here, wherever it is kept."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from adapters.canonical.faults import Fault
from gateway.services.state import State

Name = Annotated[str, Field(min_length=1)]


class ForgetRequest(BaseModel):
    """Whose data goes. An unknown word or an empty name is a mistake: passed over, it would
    delete a whole project instead of one end user's part of it."""

    model_config = ConfigDict(extra="forbid")

    end_user: Name | None = None
    project: Name | None = None


async def forget_data(state: State, asked: ForgetRequest) -> int:
    """Delete the rows of an end user, of a project, or of an end user within a project.

    What is under way is not touched: delete again when it has ended.

    :returns: how many calls, responses and the like are gone.
    :raises Fault: ``bad_request`` where nobody is named.
    """
    if asked.end_user is None and asked.project is None:
        raise Fault(
            "bad_request",
            "Say whose data to delete: ?end_user=NAME, ?project=NAME, or both.",
            param="end_user",
        )
    if asked.project is not None:
        state.runtime.memory.forget(asked.project)
    return await state.store.forget(project=asked.project, end_user=asked.end_user)
