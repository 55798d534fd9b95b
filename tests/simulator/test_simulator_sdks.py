"""The vendors' own SDKs against the simulator: all three protocols, streamed and not."""

import base64
import json

import pytest
from pydantic import BaseModel, ConfigDict

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
PROMPT = "What is the weather in Paris for 3 days?"
PNG = base64.b64encode(b"\x89PNG" + b"x" * 96).decode()


class City(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    people: int
    tags: list[str]


# ---------------------------------------------------------------- chat completions


@pytest.mark.parametrize("model", ["gpt-5.2", "echo"])
async def test_chat_echo_whole_and_streamed(oai, model):
    messages = [{"role": "user", "content": "Say 北京 é 🙂, please."}]
    whole = await oai.chat.completions.create(model=model, messages=messages)
    assert whole.choices[0].message.content == "Say 北京 é 🙂, please."
    assert whole.choices[0].finish_reason == "stop"
    assert whole.model == model

    text, chunks = "", []
    async with await oai.chat.completions.create(
        model=model, messages=messages, stream=True, stream_options={"include_usage": True}
    ) as stream:
        async for chunk in stream:
            chunks.append(chunk)
            if chunk.choices:
                text += chunk.choices[0].delta.content or ""
    assert text == whole.choices[0].message.content
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage
    assert chunks[-2].choices[0].finish_reason == "stop"


async def test_chat_tools_loop(oai):
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}]
    messages = [{"role": "user", "content": PROMPT}]
    first = await oai.chat.completions.create(model="gpt-5.2", messages=messages, tools=tools)
    call = first.choices[0].message.tool_calls[0]
    assert first.choices[0].finish_reason == "tool_calls"
    assert json.loads(call.function.arguments) == {"city": "Paris", "days": 3}

    async with oai.chat.completions.stream(
        model="gpt-5.2", messages=messages, tools=tools
    ) as stream:
        streamed = (await stream.get_final_completion()).choices[0].message.tool_calls[0]
    assert streamed.function.arguments == call.function.arguments

    messages += [
        first.choices[0].message.model_dump(exclude_none=True, exclude={"annotations"}),
        {"role": "tool", "tool_call_id": call.id, "content": "rain, 11 degrees"},
    ]
    last = await oai.chat.completions.create(model="gpt-5.2", messages=messages, tools=tools)
    assert "rain, 11 degrees" in last.choices[0].message.content


async def test_chat_parse_reasoning_image_and_choices(oai):
    parsed = await oai.chat.completions.parse(
        model="gpt-5.2",
        messages=[{"role": "user", "content": "A city: name=Oslo, people=700000"}],
        response_format=City,
    )
    assert parsed.choices[0].message.parsed.name == "Oslo"
    assert parsed.choices[0].message.parsed.people == 700000

    thinking = await oai.chat.completions.create(
        model="gpt-5.2", messages=[{"role": "user", "content": "hi"}], reasoning_effort="low"
    )
    assert thinking.choices[0].message.reasoning_content
    assert thinking.usage.completion_tokens_details.reasoning_tokens > 0

    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    seen = await oai.chat.completions.create(
        model="gpt-5.2", messages=[{"role": "user", "content": [image]}], n=2
    )
    assert [choice.message.content for choice in seen.choices] == [
        "I see an image/png of 100 bytes."
    ] * 2


# ---------------------------------------------------------------- responses


async def test_responses_echo_whole_and_streamed(oai):
    whole = await oai.responses.create(model="gpt-5.2", input="Say 北京 é 🙂, please.")
    assert whole.output_text == "Say 北京 é 🙂, please."
    assert whole.status == "completed"

    events = []
    async with await oai.responses.create(
        model="gpt-5.2", input="Say 北京 é 🙂, please.", stream=True
    ) as stream:
        async for event in stream:
            events.append(event)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == whole.output_text
    assert events[-1].response.usage == whole.usage
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text
    assert len(deltas) > 2


async def test_responses_tools_and_sealed_reasoning_loop(oai):
    tools = [{"type": "function", "name": "get_weather", "parameters": WEATHER, "strict": True}]
    conversation = [{"role": "user", "content": PROMPT}]
    settings = {
        "model": "gpt-5.2",
        "tools": tools,
        "reasoning": {"effort": "high", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
    }
    async with oai.responses.stream(input=conversation, **settings) as stream:
        first = await stream.get_final_response()
    thought, call = first.output
    assert thought.type == "reasoning"
    assert thought.summary[0].text
    assert thought.encrypted_content
    assert json.loads(call.arguments) == {"city": "Paris", "days": 3}

    conversation += [item.model_dump(exclude_none=True) for item in first.output]
    conversation += [
        {"type": "function_call_output", "call_id": call.call_id, "output": "rain, 11 degrees"}
    ]
    last = await oai.responses.create(input=conversation, **settings)
    assert "rain, 11 degrees" in last.output_text
    assert last.usage.output_tokens_details.reasoning_tokens > 0


async def test_responses_parse_image_custom_tool_and_refusal(oai):
    parsed = await oai.responses.parse(
        model="gpt-5.2", input="A city: name=Oslo, people=700000", text_format=City
    )
    assert parsed.output_parsed.people == 700000

    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"}
    seen = await oai.responses.create(model="gpt-5.2", input=[{"role": "user", "content": [image]}])
    assert seen.output_text == "I see an image/png of 100 bytes."

    custom = await oai.responses.create(
        model="sim-tool", input="print(1)", tools=[{"type": "custom", "name": "python"}]
    )
    assert custom.output[0].type == "custom_tool_call"
    assert custom.output[0].input == "print(1)"

    refused = await oai.responses.create(model="refusal", input="x")
    assert refused.output[0].content[0].refusal


async def test_responses_at_its_limit_is_incomplete(oai):
    cut = await oai.responses.create(model="echo", input="word " * 50, max_output_tokens=16)
    assert cut.status == "incomplete"
    assert cut.incomplete_details.reason == "max_output_tokens"
    assert cut.usage.output_tokens == 16


# ---------------------------------------------------------------- messages


async def test_messages_echo_whole_and_streamed(claude):
    ask = {
        "model": "claude-sonnet-4-6",
        "max_tokens": 64,
        "messages": [{"role": "user", "content": "Say 北京 é 🙂, please."}],
    }
    whole = await claude.messages.create(**ask)
    assert whole.content[0].text == "Say 北京 é 🙂, please."
    assert whole.stop_reason == "end_turn"
    async with claude.messages.stream(**ask) as stream:
        deltas = [text async for text in stream.text_stream]
        final = await stream.get_final_message()
    assert "".join(deltas) == whole.content[0].text
    assert final.usage.output_tokens == whole.usage.output_tokens
    counted = await claude.messages.count_tokens(model=ask["model"], messages=ask["messages"])
    assert counted.input_tokens == whole.usage.input_tokens


async def test_messages_tools_and_signed_thinking_loop(claude):
    tools = [{"name": "get_weather", "input_schema": WEATHER}]
    settings = {
        "model": "claude-sonnet-4-6",
        "max_tokens": 4096,
        "tools": tools,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    }
    messages = [{"role": "user", "content": PROMPT}]
    async with claude.messages.stream(messages=messages, **settings) as stream:
        first = await stream.get_final_message()
    thought, call = first.content
    assert thought.thinking
    assert thought.signature
    assert call.input == {"city": "Paris", "days": 3}
    assert first.stop_reason == "tool_use"
    messages += [
        {"role": "assistant", "content": [block.model_dump() for block in first.content]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": call.id, "content": "rain, 11 degrees"}
            ],
        },
    ]
    last = await claude.messages.create(messages=messages, **settings)
    assert "rain, 11 degrees" in last.content[-1].text


async def test_messages_schema_image_stop_and_cache(claude):
    schema = {"type": "json_schema", "schema": City.model_json_schema()}
    parsed = await claude.messages.create(
        model="claude-sonnet-4-6",
        max_tokens=256,
        messages=[{"role": "user", "content": "name=Oslo, people=700000"}],
        output_config={"format": schema},
    )
    assert City.model_validate_json(parsed.content[0].text).people == 700000

    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    seen = await claude.messages.create(
        model="claude-sonnet-4-6",
        max_tokens=64,
        messages=[{"role": "user", "content": [{"type": "image", "source": source}]}],
    )
    assert seen.content[0].text == "I see an image/png of 100 bytes."

    system = [{"type": "text", "text": "brief " * 100, "cache_control": {"type": "ephemeral"}}]
    ask = {
        "model": "claude-sonnet-4-6",
        "max_tokens": 64,
        "system": system,
        "messages": [{"role": "user", "content": "one END two"}],
        "stop_sequences": ["END"],
    }
    first = await claude.messages.create(**ask)
    second = await claude.messages.create(**ask)
    assert (first.stop_reason, first.stop_sequence) == ("stop_sequence", "END")
    assert first.content[0].text == "one "
    assert first.usage.cache_creation_input_tokens == second.usage.cache_read_input_tokens == 150


# ---------------------------------------------------------------- the rest


async def test_embeddings_completions_and_models(oai, claude):
    floats = await oai.embeddings.create(
        model="m", input=["a", "b"], dimensions=8, encoding_format="float"
    )
    packed = await oai.embeddings.create(model="m", input=["a", "b"], dimensions=8)
    assert [one.embedding for one in packed.data] == [one.embedding for one in floats.data]
    assert floats.data[0].embedding != floats.data[1].embedding

    old = await oai.completions.create(model="echo", prompt="Once upon a time")
    assert old.choices[0].text == "Once upon a time"
    chunks = [c async for c in await oai.completions.create(model="m", prompt="x y", stream=True)]
    assert "".join(chunk.choices[0].text for chunk in chunks) == "x y"

    assert "echo" in [model.id async for model in oai.models.list()]
    assert (await oai.models.retrieve("gpt-5.2")).id == "gpt-5.2"
    assert "echo" in [model.id async for model in claude.models.list()]
