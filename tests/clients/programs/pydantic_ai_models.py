"""Pydantic AI through its chat, Responses and Anthropic models: text, tools, typed output."""

import os

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

MODEL = os.environ["MODEL"]


class City(BaseModel):
    """A structured answer."""

    city: str


openai = OpenAIProvider(openai_client=AsyncOpenAI(max_retries=0))
claude = AnthropicProvider(anthropic_client=AsyncAnthropic(max_retries=0))
for model in (
    OpenAIChatModel(MODEL, provider=openai),
    OpenAIResponsesModel(MODEL, provider=openai),
    AnthropicModel(MODEL, provider=claude),
):
    assert Agent(model).run_sync("hello there").output == "hello there"

    agent = Agent(model, instructions="Be brief.")

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather of a city."""
        return f"sunny in {city}"

    assert "sunny in Rome" in agent.run_sync("weather in 'Rome'").output
    assert isinstance(Agent(model, output_type=City).run_sync("a city").output, City)
    with Agent(model).run_stream_sync("one two three") as stream:
        assert stream.get_output() == "one two three"
