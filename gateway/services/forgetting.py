"""Deleting what somebody has left here, wherever it is kept."""

from __future__ import annotations

from adapters.canonical.faults import Fault
from gateway.services.state import State


async def forget_data(state: State, *, end_user: str | None, project: str | None) -> int:
    """Delete the rows of an end user, of a project, or of an end user within a project.

    What is under way is not touched: delete again when it has ended.

    :returns: how many calls, responses and the like are gone.
    :raises Fault: ``bad_request`` where nobody is named.
    """
    if not end_user and not project:
        raise Fault(
            "bad_request",
            "Say whose data to delete: ?end_user=NAME, ?project=NAME, or both.",
            param="end_user",
        )
    if project:
        state.runtime.memory.forget(project)
    return await state.store.forget(project=project or None, end_user=end_user or None)
