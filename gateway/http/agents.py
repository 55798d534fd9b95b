"""The doors of agents: list, read, keep, forget."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from adapters.wire.json import dumps
from gateway.http.deps import Caller, Gateway, Version
from gateway.http.kept import Body
from gateway.northbound.base import DEFAULT_LIMITS
from gateway.northbound.body import read_object
from gateway.northbound.runs.agents import parse_agent
from gateway.northbound.runs.shown import agent_object
from gateway.services.agents import Agents, fit, known_tools

router = APIRouter()


def _agents(state: Gateway, caller: Caller) -> Agents:
    return state.runs.agents(caller)


Service = Annotated[Agents, Depends(_agents)]


def _json(value: Any, status: int = 200) -> Response:
    return Response(dumps(value), status, media_type="application/json")


@router.get("/agents")
async def listed(agents: Service) -> Response:
    """Every agent that the caller may use, its newest version."""
    found = [agent_object(spec, row) for spec, row in await agents.list()]
    return _json({"object": "list", "data": found})


@router.get("/agents/{name}")
async def read(name: str, agents: Service, version: Version = None) -> Response:
    """An agent, by default its newest version."""
    return _json(agent_object(*await agents.get(name, version)))


@router.put("/agents/{name}")
async def put(name: str, agents: Service, caller: Caller, body: Body, state: Gateway) -> Response:
    """Keep a new version of an agent."""
    spec = parse_agent(read_object(body, DEFAULT_LIMITS), name)
    tools = state.runs.bench.tools()
    await known_tools([spec], tools)
    fit(spec, caller, state.snapshot, tools)
    row = await agents.put(spec, state.runtime.clock.wall())
    return _json(agent_object(spec, row), 201 if row.version == 1 else 200)


@router.delete("/agents/{name}")
async def delete(name: str, agents: Service) -> Response:
    """Forget an agent; runs that have it go on."""
    await agents.delete(name)
    return _json({"name": name, "object": "agent.deleted", "deleted": True})
