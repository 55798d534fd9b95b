"""The schemas that a configuration holds, proved before the port opens.

Tools' own parameters are the tools room's matter; here are the output schemas of agents.
"""

from __future__ import annotations

from gateway.settings.problems import Problem
from gateway.settings.snapshot import Snapshot
from gateway.structured.bounds import SchemaRefused
from gateway.structured.check import Schemas


def check(snapshot: Snapshot) -> list[Problem]:
    """What is wrong with the schemas of ``snapshot``."""
    schemas = Schemas()
    problems: list[Problem] = []
    for name, agent in snapshot.extra.get("agents", {}).items():
        schema = agent.get("output_schema")
        if schema is None:
            continue
        try:
            schemas.checker(schema)
        except SchemaRefused as why:
            place = f"agents.{name}.output_schema"
            problems.append(Problem(place, f"can't be used: {why}."))
    return problems
