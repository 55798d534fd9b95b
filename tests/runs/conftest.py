"""What the tests under ``kill -9`` share: gateways that start quickly, and a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runs.nursery import Nursery
from tests.store.postgres_server import Server


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()
