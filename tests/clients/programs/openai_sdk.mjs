// The OpenAI SDK for Node: both APIs, whole and streamed, tools, embeddings, errors.
import assert from "node:assert/strict";
import OpenAI from "openai";

const model = process.env.MODEL;
const client = new OpenAI({ maxRetries: 0 });
const hi = (content) => [{ role: "user", content }];
const parameters = { type: "object", properties: { city: { type: "string" } } };

const answer = await client.chat.completions.create({ model, messages: hi("hello there") });
assert.equal(answer.choices[0].message.content, "hello there");

const runner = client.chat.completions.stream({ model, messages: hi("one two three") });
assert.equal(await runner.finalContent(), "one two three");

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    parameters,
    parse: JSON.parse,
    function: ({ city }) => `sunny in ${city}`,
  },
};
const tools = client.chat.completions.runTools({
  model,
  messages: hi("weather in 'Rome'"),
  tools: [weather],
});
assert.match(await tools.finalContent(), /sunny in Rome/);

const response = await client.responses.create({ model, input: "hello there" });
assert.equal(response.output_text, "hello there");
const stream = client.responses.stream({
  model,
  input: "and on",
  previous_response_id: response.id,
});
assert.equal((await stream.finalResponse()).output_text, "and on");

const vectors = await client.embeddings.create({ model: "embed", input: ["a", "b"] });
assert.equal(vectors.data.length, 2);
await assert.rejects(
  client.chat.completions.create({ model: "no-such-model", messages: hi("x") }),
  OpenAI.NotFoundError,
);
