"""The OpenAI SDK for Python: both APIs, whole and streamed, tools, schemas, embeddings, errors."""

import json
import os

import openai
from pydantic import BaseModel

MODEL = os.environ["MODEL"]
client = openai.OpenAI(max_retries=0)


class City(BaseModel):
    """A structured answer."""

    city: str
    people: int


def hi(text: str) -> list:
    return [{"role": "user", "content": text}]


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
TOOL = {"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}

# chat
answer = client.chat.completions.create(model=MODEL, messages=hi("hello there"))
assert answer.choices[0].message.content == "hello there"
assert answer.usage.total_tokens > 0

with client.chat.completions.stream(model=MODEL, messages=hi("one two three")) as stream:
    final = stream.get_final_completion()
assert final.choices[0].message.content == "one two three"

parsed = client.chat.completions.parse(
    model=MODEL, messages=hi("a city please"), response_format=City
)
assert isinstance(parsed.choices[0].message.parsed, City)

turns = hi("weather in 'Rome'")
called = client.chat.completions.create(model=MODEL, messages=turns, tools=[CHAT_TOOL])
call = called.choices[0].message.tool_calls[0]
assert json.loads(call.function.arguments) == {"city": "Rome"}
turns += [called.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
told = client.chat.completions.create(model=MODEL, messages=turns, tools=[CHAT_TOOL])
assert "sunny" in told.choices[0].message.content

several = client.chat.completions.create(model=MODEL, messages=hi("x"), n=2)
assert [choice.index for choice in several.choices] == [0, 1]

# responses
response = client.responses.create(model=MODEL, input="hello there")
assert response.output_text == "hello there"
again = client.responses.create(model=MODEL, input="and on", previous_response_id=response.id)
assert again.output_text == "and on"
assert client.responses.retrieve(response.id).output_text == "hello there"

with client.responses.stream(model=MODEL, input="weather in 'Rome'", tools=[TOOL]) as events:
    last = events.get_final_response()
assert json.loads(last.output[-1].arguments) == {"city": "Rome"}
typed = client.responses.parse(model=MODEL, input="a city please", text_format=City)
assert isinstance(typed.output_parsed, City)

# the rest
vectors = client.embeddings.create(model="embed", input=["a", "b"])
assert len(vectors.data) == 2
assert client.completions.create(model=MODEL, prompt="hello").choices[0].text == "hello"
assert MODEL in {model.id for model in client.models.list()}
try:
    client.chat.completions.create(model="no-such-model", messages=hi("x"))
except openai.NotFoundError as error:
    told = error.code
else:
    told = "an unknown model was answered"
assert told == "model_not_found"
