// Follows a run with the npm package eventsource, which reconnects by itself: URL.

import { EventSource } from "eventsource";

const TYPES = [
  "run.created", "run.started", "agent.started", "model.started", "message.delta",
  "message.completed", "model.finished", "agent.finished", "run.completed",
];

const ids = [];
const awake = setInterval(() => {}, 1000); // between two connections nothing else keeps node alive
const source = new EventSource(process.argv[2]);
for (const type of TYPES) {
  source.addEventListener(type, (event) => ids.push(Number(event.lastEventId)));
}
source.addEventListener("error", (error) => {
  if (source.readyState !== EventSource.CLOSED) return;
  if (error.code !== 204) throw new Error(`closed with ${error.code}: ${error.message}`);
  clearInterval(awake);
  console.log(JSON.stringify({ ids }));
});
