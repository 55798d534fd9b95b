// The Anthropic SDK for JavaScript: messages, streams, tools, counting, errors.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";

const model = process.env.MODEL;
const client = new Anthropic({ maxRetries: 0 });
const hi = (content) => [{ role: "user", content }];

const message = await client.messages.create({
  model,
  max_tokens: 100,
  messages: hi("hello there"),
});
assert.equal(message.content[0].text, "hello there");

const stream = client.messages.stream({ model, max_tokens: 100, messages: hi("one two three") });
assert.equal(await stream.finalText(), "one two three");

const called = await client.messages.create({
  model,
  max_tokens: 100,
  messages: hi("weather in 'Rome'"),
  tools: [
    {
      name: "get_weather",
      input_schema: { type: "object", properties: { city: { type: "string" } } },
    },
  ],
});
assert.equal(called.stop_reason, "tool_use");
assert.deepEqual(called.content.at(-1).input, { city: "Rome" });

const counted = await client.messages.countTokens({ model, messages: hi("one two three") });
assert.ok(counted.input_tokens > 0);
await assert.rejects(
  client.messages.create({ model: "no-such-model", max_tokens: 10, messages: hi("x") }),
  Anthropic.NotFoundError,
);
