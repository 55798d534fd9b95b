"""Both databases: a test that takes ``url`` or ``books`` runs over SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.store.booking import Books
from tests.store.postgres_server import Server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/gateway.db"


@pytest.fixture
def postgres_url(postgres: Server) -> str:
    return postgres.database()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A fresh, empty database."""
    made: str = request.getfixturevalue(f"{request.param}_url")
    return made


@pytest.fixture
async def books(url: str) -> AsyncIterator[Books]:
    async with Books(url) as opened:
        yield opened
