"""One simulator a test, and the vendors' own SDKs pointed at it."""

from collections.abc import AsyncIterator

import anthropic
import openai
import pytest

from adapters.simulator import Simulator, running


@pytest.fixture
async def sim() -> AsyncIterator[Simulator]:
    async with running() as simulator:
        yield simulator


@pytest.fixture
async def oai(sim: Simulator) -> AsyncIterator[openai.AsyncOpenAI]:
    client = openai.AsyncOpenAI(base_url=f"{sim.url}/v1", api_key="sk-test", max_retries=0)
    async with client:
        yield client


@pytest.fixture
async def claude(sim: Simulator) -> AsyncIterator[anthropic.AsyncAnthropic]:
    client = anthropic.AsyncAnthropic(base_url=sim.url, api_key="sk-test", max_retries=0)
    async with client:
        yield client
