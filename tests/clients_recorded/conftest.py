"""One gateway for all recorded requests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.clients_recorded.replaying import TABLES
from tests.harness import Harness, gateway


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def g(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Harness]:
    """The running gateway."""
    async with gateway(tmp_path_factory.mktemp("gateway"), *TABLES) as running:
        yield running
