"""One gateway for all cases, whose provider sends what a recording holds, to the byte."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.harness import KEYS, gateway
from tests.lossless.playing import CONFIG, Player, Wire


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def wire(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Wire]:
    """The gateway and its provider."""
    async with contextlib.AsyncExitStack() as stack:
        player = await stack.enter_async_context(Player().running())
        text = CONFIG.replace("{raw}", player.url) + KEYS
        folder = tmp_path_factory.mktemp("gateway")
        running = await stack.enter_async_context(gateway(folder, config=text))
        yield Wire(running, player)
