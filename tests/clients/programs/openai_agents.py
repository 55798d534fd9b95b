"""The OpenAI Agents SDK on both APIs: an agent with a tool, whole and streamed."""

import asyncio
import os

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

set_tracing_disabled(True)
MODEL = os.environ["MODEL"]


@function_tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


async def main() -> None:
    client = AsyncOpenAI(max_retries=0)
    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        agent = Agent(
            name="teller",
            instructions="Be brief.",
            tools=[get_weather],
            model=kind(model=MODEL, openai_client=client),
        )
        told = await Runner.run(agent, "weather in 'Rome'")
        assert "sunny in Rome" in told.final_output
        streamed = Runner.run_streamed(agent, "weather in 'Oslo'")
        events = [event async for event in streamed.stream_events()]
        assert events
        assert "sunny in Oslo" in streamed.final_output


asyncio.run(main())
