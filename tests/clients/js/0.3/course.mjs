// Plays the course of tests/clients with the JavaScript SDK 0.3, as its defaults are, and prints what it saw.
//
//   node course.mjs URL      prints one JSON object for each step; runs beside the node_modules of that SDK
import { ClientFactory, DefaultAgentCardResolver } from "@a2a-js/sdk/client";

const TEXT = "grüße 🦉 مرحبا";
const tell = (step, seen) => console.log(JSON.stringify({ step, ...seen }));
const told = (parts) => ({
  answer: parts[0].text,
  notice: parts.length === 2 && parts[1].metadata?.gatehouse?.kind === "notice",
});
const result = (task) => ({
  state: task.status.state,
  ...(task.artifacts?.length ? told(task.artifacts[0].parts) : {}),
});
const message = (parts, contextId) => ({
  message: { kind: "message", role: "user", messageId: crypto.randomUUID(), contextId, parts },
});
const text = (words, contextId) => message([{ kind: "text", text: words }], contextId);

async function failing(step, call) {
  try {
    await call();
    tell(step, { error: "", code: 0 });
  } catch (error) {
    const code = error.errorResponse?.error.code ?? Number(/\(Code: (-\d+)\)/.exec(error.message)?.[1]);
    tell(step, { error: error.name, code });
  }
}

async function streamed(step, client, words, cancel = false) {
  const states = [];
  const texts = [];
  let ended = {};
  for await (const event of client.sendMessageStream(text(words))) {
    if (event.kind === "task" || event.kind === "status-update") {
      if (states.at(-1) !== event.status.state) states.push(event.status.state);
    } else if (event.kind === "artifact-update") {
      texts.push(event.artifact.parts[0].text);
      ended = told(event.artifact.parts);
      if (cancel && texts.length === 1) {
        tell("cancel", { state: (await client.cancelTask({ id: event.taskId })).status.state });
      }
    }
  }
  tell(step, { states, texts, ...ended });
}

const url = process.argv[2];
const card = await new DefaultAgentCardResolver().resolve(url);
const client = await new ClientFactory().createFromAgentCard(card);
tell("card", {
  name: card.name, skills: card.skills.map((skill) => skill.id), streams: card.capabilities.streaming,
});
const first = await client.sendMessage(text(TEXT));
tell("send", result(first));
tell("again", result(await client.sendMessage(text("before", first.contextId))));
tell("get", result(await client.getTask({ id: first.id })));
await streamed("stream", client, "grow");
await streamed("quiet", client, "quiet");
await streamed("cancelled", client, "wait", true);
await failing("unknown task", () => client.getTask({ id: "nobody-knows" }));
await failing("unknown task, streamed", async () => {
  const lost = text("hello");
  lost.message.taskId = "nobody-knows";
  for await (const _ of client.sendMessageStream(lost));
});
await failing("ended task", () => client.cancelTask({ id: first.id }));
const file = { kind: "file", file: { bytes: Buffer.from("\x89PNG").toString("base64"), mimeType: "image/png" } };
await failing("picture", () => client.sendMessage(message([file])));
const headed = { serviceParameters: { "A2A-Version": "1.0" } };
await failing("version", () => client.sendMessage(text("hello"), headed));
