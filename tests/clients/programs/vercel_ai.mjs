// The Vercel AI SDK through its three providers: text, streams, tools, objects, embeddings.
import assert from "node:assert/strict";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embedMany, generateText, isStepCount, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const { MODEL, OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey } = process.env;
const openai = createOpenAI({ baseURL, apiKey });
const compatible = createOpenAICompatible({
  name: "gateway",
  baseURL,
  apiKey,
  supportsStructuredOutputs: true,
});
const anthropic = createAnthropic({ baseURL, apiKey });
const stop = (isStepCount ?? stepCountIs)(5);

const weather = tool({
  description: "The weather of a city",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `sunny in ${city}`,
});

for (const model of [
  openai.responses(MODEL),
  openai.chat(MODEL),
  compatible(MODEL),
  anthropic(MODEL),
]) {
  const one = { model, maxRetries: 0 };
  const told = await generateText({ ...one, prompt: "hello there" });
  assert.equal(told.text, "hello there");

  const streamed = streamText({ ...one, prompt: "one two three" });
  let text = "";
  for await (const piece of streamed.textStream) text += piece;
  assert.equal(text, "one two three");

  const used = await generateText({
    ...one,
    prompt: "weather in 'Rome'",
    tools: { get_weather: weather },
    stopWhen: stop,
  });
  assert.match(used.text, /sunny in Rome/);

  const typed = await generateText({
    ...one,
    prompt: "a city please",
    output: Output.object({ schema: z.object({ city: z.string() }) }),
  });
  assert.equal(typeof typed.output.city, "string");
}

const vectors = await embedMany({ model: openai.embeddingModel("embed"), values: ["a", "b"] });
assert.equal(vectors.embeddings.length, 2);
