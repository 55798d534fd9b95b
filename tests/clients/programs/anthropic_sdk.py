"""The Anthropic SDK for Python: messages, the stream helper, the tool runner, counting, errors."""

import os

import anthropic
from anthropic import beta_tool

MODEL = os.environ["MODEL"]
client = anthropic.Anthropic(max_retries=0)


def hi(text: str) -> list:
    return [{"role": "user", "content": text}]


message = client.messages.create(model=MODEL, max_tokens=200, messages=hi("hello there"))
assert message.content[0].text == "hello there"
assert message.stop_reason == "end_turn"
assert message.usage.output_tokens > 0

with client.messages.stream(
    model=MODEL,
    max_tokens=200,
    system=[{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
    messages=hi("one two three"),
) as stream:
    assert "".join(stream.text_stream) == "one two three"
    assert stream.get_final_message().stop_reason == "end_turn"

with client.messages.stream(
    model=MODEL,
    max_tokens=4000,
    thinking={"type": "enabled", "budget_tokens": 2000},
    messages=hi("think of it"),
) as stream:
    kinds = [block.type for block in stream.get_final_message().content]
assert kinds[-1] == "text"


@beta_tool
def get_weather(city: str) -> str:
    """The weather of a city.

    Args:
        city: Its name.
    """
    return f"sunny in {city}"


runner = client.beta.messages.tool_runner(
    model=MODEL, max_tokens=500, tools=[get_weather], messages=hi("weather in 'Rome'")
)
final = runner.until_done()
assert "sunny in Rome" in final.content[-1].text

assert client.messages.count_tokens(model=MODEL, messages=hi("one two three")).input_tokens > 0
assert MODEL in {model.id for model in client.models.list()}

for wrong, kind in (
    ({"model": "no-such-model", "max_tokens": 10, "messages": hi("x")}, anthropic.NotFoundError),
    ({"model": MODEL, "max_tokens": -1, "messages": hi("x")}, anthropic.BadRequestError),
    ({"model": MODEL, "max_tokens": 10, "messages": []}, anthropic.BadRequestError),
):
    try:
        client.messages.create(**wrong)
    except kind as error:
        told = error.body["type"]
    else:
        told = f"{kind.__name__} was expected"
    assert told == "error"
stranger = anthropic.Anthropic(api_key="wrong", auth_token=None, max_retries=0)
try:
    stranger.messages.create(model=MODEL, max_tokens=10, messages=hi("x"))
except anthropic.AuthenticationError:
    pass
else:
    raise AssertionError("a wrong key is an error")
