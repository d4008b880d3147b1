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
from runtime.modelproxy.demo_search import search_for
from runtime.modelproxy.messages_sse import Block, Text, ToolUse, estimate_tokens, message, stream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable

    from runtime.modelproxy.demo_conversation import Conversation
    from runtime.modelproxy.demo_passages import Passage
    from runtime.modelproxy.demo_search import Search

GRANT_PREFIX: Final = "mcp__grants__"
GREP_LIMIT: Final = 250
FILES_READ: Final = 2
GRANT_CHARS: Final = 400
SAID_CHARS: Final = 400
DESCRIBED_WORDS: Final = 2
DELTA_CHARS: Final = 60

ENGLISH: Final = {
    "hello": "Hello! Ask me something, and I will look it up in the public documents.",
    "found": "Here is what the public documents say:",
    "tool": "And the tool {name} answers:",
    "nothing": "The public documents say nothing about that, so I cannot answer it.",
    "first": "The first thing you asked, as far as I was told of this conversation:",
    "last": "Before this you asked:",
    "none": "That is the first thing you asked, as far as I was told of this conversation.",
    "demo": "(This is the demo model: it quotes documents and does not reason.)",
}
GERMAN: Final = {
    "hello": "Hallo! Fragen Sie mich etwas, ich suche es in den öffentlichen Dokumenten.",
    "found": "Das steht in den öffentlichen Dokumenten:",
    "tool": "Und das Werkzeug {name} antwortet:",
    "nothing": "Die öffentlichen Dokumente sagen dazu nichts, deshalb kann ich es nicht beantworten.",
    "first": "Das Erste, was Sie gefragt haben, soweit mir von diesem Gespräch gesagt wurde:",
    "last": "Davor haben Sie gefragt:",
    "none": "Das ist das Erste, was Sie gefragt haben, soweit mir von diesem Gespräch gesagt wurde.",
    "demo": "(Dies ist das Demomodell: Es zitiert Dokumente und denkt nicht.)",
}


def respond(conversation: Conversation) -> list[Block]:
    """Return the next message: tool calls while there is something to look up, else the answer."""
    question = conversation.question
    words = GERMAN if demo_words.is_german(question) else ENGLISH
    if demo_words.is_greeting(question):
        return [_text([words["hello"]], words)]
    back = demo_words.asks_back(question)
    if back:
        return [_text(_said(conversation, back, words), words)]
    search = search_for(conversation)
    step = _step(conversation, search) if search.terms else []
    if step:
        return step
    found = demo_passages.best(_candidates(conversation), search)
    parts = [words["found"], *(_quote(passage, search) for passage in found)] if found else []
    for call in conversation.calls:
        if call.name.startswith(GRANT_PREFIX) and call.result.strip():
            name = call.name.removeprefix(GRANT_PREFIX)
            parts += [words["tool"].format(name=name), _quoted(call.result.strip()[:GRANT_CHARS])]
    return [_text(parts or [words["nothing"]], words)]


def _said(conversation: Conversation, which: str, words: dict[str, str]) -> list[str]:
    if not conversation.memory:
        return [words["none"]]
    said = conversation.memory[0 if which == "first" else -1]
    return [words[which], _quoted(said.strip()[:SAID_CHARS])]


def _step(conversation: Conversation, search: Search) -> list[Block]:
    """Return the next calls: a search and any granted tool that fits, then the best files, then none."""
    done = {call.name for call in conversation.calls}
    if not done:
        return _first_calls(conversation, search)
    if "Read" not in conversation.tools or "Read" in done:
        return []
    told = demo_passages.inline_documents(conversation.system)
    files = [file for file in _files(conversation, search) if file not in told]
    return [ToolUse("Read", {"file_path": file}) for file in files[:FILES_READ]]


def _first_calls(conversation: Conversation, search: Search) -> list[Block]:
    calls: list[Block] = []
    if not _told_enough(conversation, search):
        if "Grep" in conversation.tools:
            pattern = r"\b(" + "|".join(search.stems) + ")"
            grep = {"pattern": pattern, "-i": True, "-n": True, "output_mode": "content"}
            calls.append(ToolUse("Grep", {**grep, "head_limit": GREP_LIMIT}))
        elif "Glob" in conversation.tools:
            calls.append(ToolUse("Glob", {"pattern": "**/*.md"}))
    tool = _fitting_tool(conversation, search)
    return [*calls, ToolUse(tool, {})] if tool else calls


def _fitting_tool(conversation: Conversation, search: Search) -> str:
    """Return the granted tool that is about the question, or "": one salient word of its name decides.

    Else its description does, when it holds two of them, or the only one.
    """
    salient = [term for term in search.terms if term.salient]
    fitting = ""
    most = 0
    for name in conversation.tools:
        if not name.startswith(GRANT_PREFIX):
            continue
        called = _stems_of(name.removeprefix(GRANT_PREFIX).replace("_", " "))
        described = _stems_of(conversation.described.get(name, ""))
        by_name = sum(not called.isdisjoint(term.stems) for term in salient)
        by_description = sum(not described.isdisjoint(term.stems) for term in salient)
        fits = by_name or by_description >= min(DESCRIBED_WORDS, len(salient))
        if fits and 2 * by_name + by_description > most:
            fitting, most = name, 2 * by_name + by_description
    return fitting


def _stems_of(text: str) -> frozenset[str]:
    return demo_words.stems(demo_words.topics(text))


def _told_enough(conversation: Conversation, search: Search) -> bool:
    told = demo_passages.inline_documents(conversation.system)
    return any(
        demo_passages.answers(passage, search)
        for file, text in told.items()
        for passage in demo_passages.passages(file, text)
    )


def _files(conversation: Conversation, search: Search) -> list[str]:
    lines: list[tuple[str, str]] = []
    for call in conversation.calls:
        if call.name == "Grep":
            lines += demo_passages.grep_lines(call.result)
        elif call.name == "Glob":
            named = [line for line in call.result.splitlines() if line.endswith(".md")]
            lines += [(file, "") for file in named if not demo_words.stems((file,)).isdisjoint(search.stems)]
    return demo_passages.rank_files(lines, search)


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


def _quote(passage: Passage, search: Search) -> str:
    return f"{_quoted(demo_passages.excerpt(passage, search))}\n({passage.file})"


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
