// Plays the course of tests/clients with the JavaScript SDK 1.3, as its defaults are, and prints what it saw.
//
//   node course.mjs URL      prints one JSON object for each step; runs beside the node_modules of that SDK
import { Role, taskStateToJSON } from "@a2a-js/sdk";
import { ClientFactory, DefaultAgentCardResolver } from "@a2a-js/sdk/client";

const TEXT = "grüße 🦉 مرحبا";
const tell = (step, seen) => console.log(JSON.stringify({ step, ...seen }));
const state = (value) => taskStateToJSON(value).replace("TASK_STATE_", "").toLowerCase();
const value = (part) => part.content?.value;
const told = (parts) => ({
  answer: value(parts[0]),
  notice: parts.length === 2 && parts[1].metadata?.gatehouse?.kind === "notice",
});
const result = (task) => ({
  state: state(task.status.state),
  ...(task.artifacts.length ? told(task.artifacts[0].parts) : {}),
});
const message = (parts, contextId = "") => ({
  tenant: "",
  metadata: undefined,
  configuration: undefined,
  message: {
    messageId: crypto.randomUUID(), contextId, taskId: "", role: Role.ROLE_USER, parts,
    metadata: undefined, extensions: [], referenceTaskIds: [],
  },
});
const part = ($case, content, mediaType = "") => ({
  content: { $case, value: content }, metadata: undefined, filename: "", mediaType,
});
const text = (words, contextId) => message([part("text", words)], contextId);

async function failing(step, call) {
  try {
    await call();
    tell(step, { error: "", code: 0 });
  } catch (error) {
    tell(step, { error: error.name, code: error.envelopeCode ?? null });
  }
}

async function streamed(step, client, words, cancel = false) {
  const states = [];
  const texts = [];
  let ended = {};
  for await (const { payload } of client.sendMessageStream(text(words))) {
    if (payload.$case === "task" || payload.$case === "statusUpdate") {
      const now = state(payload.value.status.state);
      if (states.at(-1) !== now) states.push(now);
    } else if (payload.$case === "artifactUpdate") {
      const { artifact, taskId } = payload.value;
      texts.push(value(artifact.parts[0]));
      ended = told(artifact.parts);
      if (cancel && texts.length === 1) {
        const task = await client.cancelTask({ tenant: "", id: taskId, metadata: undefined });
        tell("cancel", { state: state(task.status.state) });
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
tell("get", result(await client.getTask({ tenant: "", id: first.id })));
await streamed("stream", client, "grow");
await streamed("quiet", client, "quiet");
await streamed("cancelled", client, "wait", true);
await failing("unknown task", () => client.getTask({ tenant: "", id: "nobody-knows" }));
await failing("unknown task, streamed", async () => {
  const lost = text("hello");
  lost.message.taskId = "nobody-knows";
  for await (const _ of client.sendMessageStream(lost));
});
await failing("ended task", () => client.cancelTask({ tenant: "", id: first.id, metadata: undefined }));
await failing("picture", () => client.sendMessage(message([part("raw", Buffer.from("\x89PNG"), "image/png")])));
