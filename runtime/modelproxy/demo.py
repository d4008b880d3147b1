"""The demo model: answers without any model, by searching the documents with the turn's own tools.

It stands in for the upstream while the key file is empty, so that a first `./gatehouse up` shows the whole
line working: the CLI greps and reads inside the sandbox, and the answer quotes what was found, with file
names. It is deterministic and offline, and says in every answer that it is the demo.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Final

from runtime.modelproxy import demo_conversation, demo_passages, demo_words
from runtime.modelproxy.backend import Ask, Reply
from runtime.modelproxy.messages_sse import Block, Text, ToolUse, estimate_tokens, message, stream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable

    from runtime.modelproxy.demo_conversation import Conversation
    from runtime.modelproxy.demo_passages import Passage

GRANT_PREFIX: Final = "mcp__grants__"
GREP_LIMIT: Final = 250
FILES_READ: Final = 2
GRANT_CHARS: Final = 400
MEMORY_WEIGHT: Final = 0.4
HINT_WEIGHT: Final = 0.8
DELTA_CHARS: Final = 60

ENGLISH: Final = {
    "hello": "Hello! Ask me something, and I will look it up in the public documents.",
    "found": "Here is what the public documents say:",
    "tool": "And the tool {name} answers:",
    "nothing": "The public documents say nothing about that, so I cannot answer it.",
    "demo": "(This is the demo model: it quotes documents and does not reason.)",
}
GERMAN: Final = {
    "hello": "Hallo! Fragen Sie mich etwas, ich suche es in den öffentlichen Dokumenten.",
    "found": "Das steht in den öffentlichen Dokumenten:",
    "tool": "Und das Werkzeug {name} antwortet:",
    "nothing": "Die öffentlichen Dokumente sagen dazu nichts, deshalb kann ich es nicht beantworten.",
    "demo": "(Dies ist das Demomodell: Es zitiert Dokumente und denkt nicht.)",
}


def respond(conversation: Conversation) -> list[Block]:
    """Return the next message: tool calls while there is something to look up, else the answer."""
    question = conversation.question
    words = GERMAN if demo_words.is_german(question) else ENGLISH
    if demo_words.is_greeting(question):
        return [_text([words["hello"]], words)]
    wanted = _wanted(conversation)
    step = _search(conversation, wanted) if wanted else []
    if step:
        return step
    found = demo_passages.best(_candidates(conversation), wanted)
    parts = [words["found"], *(_quote(passage) for passage in found)] if found else []
    for call in conversation.calls:
        if call.name.startswith(GRANT_PREFIX) and call.result.strip():
            name = call.name.removeprefix(GRANT_PREFIX)
            parts += [words["tool"].format(name=name), _quoted(call.result.strip()[:GRANT_CHARS])]
    return [_text(parts or [words["nothing"]], words)]


def _wanted(conversation: Conversation) -> dict[str, float]:
    """Weigh the question's stems; a question of one topic or none borrows those of the one before it."""
    wanted = dict.fromkeys(demo_words.topics(conversation.question), 1.0)
    if len(wanted) <= 1 and conversation.memory:
        for stem in demo_words.topics(conversation.memory[-1]):
            wanted.setdefault(stem, MEMORY_WEIGHT)
    if demo_words.asks_who(conversation.question):
        wanted.setdefault(demo_words.stem("biography"), HINT_WEIGHT)
    return wanted


def _search(conversation: Conversation, wanted: dict[str, float]) -> list[Block]:
    """Return the next calls: a search and any granted tool that fits, then the best files, then none."""
    done = {call.name for call in conversation.calls}
    if not done:
        return _first_calls(conversation, wanted)
    if "Read" not in conversation.tools or "Read" in done:
        return []
    told = demo_passages.inline_documents(conversation.system)
    files = [file for file in _files(conversation, wanted) if file not in told]
    return [ToolUse("Read", {"file_path": file}) for file in files[:FILES_READ]]


def _first_calls(conversation: Conversation, wanted: dict[str, float]) -> list[Block]:
    calls: list[Block] = []
    if not _told_enough(conversation, wanted):
        if "Grep" in conversation.tools:
            pattern = r"\b(" + "|".join(wanted) + ")"
            search = {"pattern": pattern, "-i": True, "-n": True, "output_mode": "content"}
            calls.append(ToolUse("Grep", {**search, "head_limit": GREP_LIMIT}))
        elif "Glob" in conversation.tools:
            calls.append(ToolUse("Glob", {"pattern": "**/*.md"}))
    for name in conversation.tools:
        named = demo_words.topics(name.removeprefix(GRANT_PREFIX).replace("_", " "))
        if name.startswith(GRANT_PREFIX) and set(named) & wanted.keys():
            calls.append(ToolUse(name, {}))
            break
    return calls


def _told_enough(conversation: Conversation, wanted: dict[str, float]) -> bool:
    told = demo_passages.inline_documents(conversation.system)
    return any(
        wanted.keys() <= demo_words.stems((passage.text, passage.heading, file))
        for file, text in told.items()
        for passage in demo_passages.passages(file, text)
    )


def _files(conversation: Conversation, wanted: dict[str, float]) -> list[str]:
    lines: list[tuple[str, str]] = []
    for call in conversation.calls:
        if call.name == "Grep":
            lines += demo_passages.grep_lines(call.result)
        elif call.name == "Glob":
            named = [line for line in call.result.splitlines() if line.endswith(".md")]
            lines += [(file, "") for file in named if demo_words.stems((file,)) & wanted.keys()]
    return demo_passages.rank_files(lines, tuple(wanted))


def _candidates(conversation: Conversation) -> list[Passage]:
    documents = demo_passages.inline_documents(conversation.system)
    matched: dict[str, list[str]] = {}
    for call in conversation.calls:
        if call.name == "Read":
            documents[str(call.input.get("file_path"))] = demo_passages.read_text(call.result)
        elif call.name == "Grep":
            for file, text in demo_passages.grep_lines(call.result):
                matched.setdefault(file, []).append(text)
    found = [passage for file, text in documents.items() for passage in demo_passages.passages(file, text)]
    for file, lines in matched.items():
        if not documents.get(file):
            found += demo_passages.passages(file, "\n\n".join(lines))
    return found


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def _quote(passage: Passage) -> str:
    return f"{_quoted(passage.text)}\n({passage.file})"


def _text(parts: Iterable[str], words: dict[str, str]) -> Text:
    text = "\n\n".join([*parts, words["demo"]])
    return Text(text, chunks=max(3, len(text) // DELTA_CHARS))


class Demo:
    """The demo model as a backend. Holds nothing: a request is all it knows."""

    demo = True

    def leaks(self, data: bytes) -> bool:  # noqa: ARG002  the demo has no secret
        """Nothing to leak."""
        return False

    @contextlib.asynccontextmanager
    async def ask(self, request: Ask) -> AsyncGenerator[Reply, None]:
        """Answer from the request alone."""
        body = json.loads(request.body)
        tokens = estimate_tokens(request.body)
        if request.path.endswith("/count_tokens"):
            yield Reply(200, "application/json", _once([json.dumps({"input_tokens": tokens}).encode()]))
            return
        conversation = demo_conversation.read(body)
        blocks = respond(conversation)
        seed = f"{len(conversation.calls)}/{conversation.question}"
        if request.stream:
            events = stream(body["model"], blocks, input_tokens=tokens, seed=seed)
            yield Reply(200, "text/event-stream", _once(events))
        else:
            whole = message(body["model"], blocks, input_tokens=tokens, seed=seed)
            yield Reply(200, "application/json", _once([json.dumps(whole).encode()]))


async def _once(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
