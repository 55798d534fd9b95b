"""One gateway and one simulator for the whole catalogue; every case has an alias of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.faults.board import Board
from tests.faults.catalogue import FAULTS
from tests.faults.conduct import cases
from tests.harness import Harness, gateway


@pytest.fixture(scope="session")
def board() -> Iterator[Board]:
    """The verdicts; printed at the end, for ``make faults``."""
    found = Board()
    yield found
    print("\n\n" + "\n".join(found.lines()))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def g(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Harness]:
    """The running gateway."""
    aliases = [case.toml() for fault in FAULTS for case in cases(fault)]
    quiet = '[observe]\nlog_level = "error"\n'
    async with gateway(tmp_path_factory.mktemp("faults"), *aliases, quiet) as running:
        yield running
