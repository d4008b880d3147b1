"""`ask` against a real front over HTTP, and against servers that are anything but an agent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import ssl
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from runtime.agents.definition import Messages
from runtime.cli import ask_client, ask_http
from runtime.cli.ask import read_question
from runtime.cli.ask_view import Begun, Doing, Ended, JsonView, Partial, TextView
from runtime.cli.failures import told
from runtime.cli.main import main
from runtime.errors import GatehouseError, ServiceUnreachable, UsageError
from runtime.turn.events import Answer, Cause, Failed, Snapshot, Step
from tests.a2a.conftest import ScriptedRunner, definition, serving
from tests.harness.fake_docker import FakeDocker, container

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from runtime.cli.ask_view import Event
    from runtime.turn.events import TurnEvent
    from runtime.turn.plan import TurnPlan

REPO = Path(__file__).resolve().parents[3]
HOSTILE = "before \x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \u202eback\u202c after"
WAIT_SECONDS = 20.0
NOTICE = f"\n\n{Messages().notice}"  # stands apart below the first answer of a conversation


async def asked(url: str, question: str = "hello", context: str = "", *, own: bool = False) -> list[Event]:
    agent = ask_client.Agent(url, own=own)
    try:
        async with contextlib.aclosing(agent.ask(question, context)) as events:
            return [event async for event in events]
    finally:
        await agent.aclose()


async def failure(url: str) -> GatehouseError:
    with pytest.raises(GatehouseError) as caught:
        await asked(url)
    return caught.value


def script(*events: TurnEvent) -> ScriptedRunner:
    async def play(plan: TurnPlan) -> AsyncGenerator[TurnEvent]:
        del plan
        for event in events:
            yield event

    return ScriptedRunner(play)


# --- a real front ---------------------------------------------------------------------------------------


async def test_an_answer_comes_with_its_steps_and_the_context_to_go_on_with() -> None:
    runner = script(Step("Read", "Reading faq.md"), Snapshot("word " * 60), Answer("word " * 80))
    async with serving(runner, definition(), own_url=True) as front:
        events = await asked(front.url)
    begun, last = events[0], events[-1]
    assert isinstance(begun, Begun)
    assert [event.untrusted_text for event in events if isinstance(event, Doing)][-1] == "Reading faq.md"
    assert any(isinstance(event, Partial) for event in events[:-1])
    assert isinstance(last, Ended)
    assert (last.state, last.failure) == ("completed", None)
    assert last.untrusted_text == ("word " * 80).strip() + NOTICE
    assert (last.context, last.task) == (begun.context, begun.task)


async def test_a_second_question_with_the_context_goes_on_with_the_first() -> None:
    async with serving(ScriptedRunner(), definition(), own_url=True) as front:
        first = (await asked(front.url, "my word is blue"))[-1]
        assert isinstance(first, Ended)
        await asked(front.url, "what was it?", first.context)
        assert [line["text"] for line in front.runner.prompt()][:1] == ["my word is blue"]


async def test_our_own_stack_is_asked_where_it_is_and_not_where_its_card_says() -> None:
    async with serving(ScriptedRunner(), definition()) as front:  # its card names port 8011
        last = (await asked(front.url, own=True))[-1]
    assert isinstance(last, Ended)
    assert last.untrusted_text == "echo: hello" + NOTICE


@pytest.mark.parametrize("cause", [Cause.TIMEOUT, Cause.MODEL, Cause.ENGINE])
async def test_a_configured_message_in_place_of_an_answer_is_a_failure_that_names_its_outcome(
    cause: Cause,
) -> None:
    async with serving(script(Failed(cause, "detail")), definition(), own_url=True) as front:
        last = (await asked(front.url))[-1]
    assert isinstance(last, Ended)
    assert last.untrusted_text
    assert last.failure is not None
    assert last.failure.exit_code == 1
    assert cause.value in str(last.failure)


async def test_a_cancelled_task_is_a_failure() -> None:
    async with serving(script(Failed(Cause.CANCELLED, "detail")), definition(), own_url=True) as front:
        last = (await asked(front.url))[-1]
    assert isinstance(last, Ended)
    assert last.state == "canceled"
    assert last.failure is not None


# --- anything but an agent ------------------------------------------------------------------------------

CARD = {
    "name": "Other",
    "description": "d",
    "version": "1",
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text"],
    "defaultOutputModes": ["text"],
    "skills": [],
}


def card10(url: str, **changes: Any) -> dict[str, Any]:
    interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    return {**CARD, "supportedInterfaces": [interface], **changes}


def card03(url: str, **changes: Any) -> dict[str, Any]:
    return {**CARD, "url": url, "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0", **changes}


def sse(*values: Any) -> bytes:
    lines = b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values)
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + lines


def reply(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    head = (f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers)
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


@dataclass
class Server:
    """A server of a test's own. `get` and `post` return the bytes of an answer, or write it themselves."""

    url: str = ""
    get: Callable[[str, str], bytes] = lambda url, _path: reply(json.dumps(card10(url)).encode())
    post: Callable[[str, bytes], bytes] = lambda _url, _body: b""
    endless: bytes = b""
    hang: bool = False

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, path, _ = head.split(" ", 2)
            length = next(
                (line[15:] for line in head.lower().splitlines() if line.startswith("content-length:")), "0"
            )
            body = await reader.readexactly(int(length))
            writer.write(self.get(self.url, path) if method == "GET" else self.post(self.url, body))
            while method == "POST" and self.endless:
                writer.write(self.endless)
                await writer.drain()
            if method == "POST" and self.hang:
                await writer.drain()
                await reader.read()
        writer.close()


@contextlib.asynccontextmanager
async def server(**parts: Any) -> AsyncGenerator[Server]:
    made = Server(**parts)
    listening = await asyncio.start_server(made.handle, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening:
        yield made


def result10(**value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "1", "result": value}


async def test_an_agent_of_the_older_dialect_alone_is_asked_in_it() -> None:
    asked_methods: list[str] = []

    def post(_url: str, body: bytes) -> bytes:
        asked_methods.append(json.loads(body)["method"])
        message = {
            "kind": "message",
            "messageId": "m",
            "role": "agent",
            "parts": [{"kind": "text", "text": "old"}],
        }
        return sse({"jsonrpc": "2.0", "id": "1", "result": message})

    def get(url: str, path: str) -> bytes:
        if path.endswith("agent.json"):
            return reply(json.dumps(card03(url + "/rpc")).encode())
        return reply(b"", "404 Not Found")

    async with server(get=get, post=post) as other:
        last = (await asked(other.url))[-1]
    assert isinstance(last, Ended)
    assert (last.untrusted_text, last.failure) == ("old", None)
    assert asked_methods == ["message/stream"]


async def test_an_answer_in_pieces_is_put_together() -> None:
    def piece(text: str, *, append: bool) -> dict[str, Any]:
        artifact = {"artifactId": "a", "parts": [{"text": text}]}
        return result10(
            artifactUpdate={"taskId": "t", "contextId": "c", "artifact": artifact, "append": append}
        )

    state = {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}
    events = (piece("one ", append=False), piece("two", append=True), result10(statusUpdate=state))
    async with server(post=lambda _url, _body: sse(*events)) as other:
        last = (await asked(other.url))[-1]
    assert isinstance(last, Ended)
    assert (last.untrusted_text, last.context, last.task) == ("one two", "c", "t")


async def test_an_agent_that_wants_to_know_more_is_no_answer() -> None:
    message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "Which day?"}]}
    status = {"state": "TASK_STATE_INPUT_REQUIRED", "message": message}
    update = result10(statusUpdate={"taskId": "t", "contextId": "c", "status": status})
    async with server(post=lambda _url, _body: sse(update)) as other:
        last = (await asked(other.url))[-1]
    assert isinstance(last, Ended)
    assert last.untrusted_text == "Which day?"
    assert "input-required" in str(last.failure)
    assert "--context" in str(last.failure)


@pytest.mark.parametrize(
    ("get", "words"),
    [
        (lambda _url, _path: reply(b"<html>hello</html>"), "is no A2A agent"),
        (lambda _url, _path: reply(b"[1, 2]"), "is no A2A agent"),
        (lambda _url, _path: reply(b'{"skills": 5, "securitySchemes": 7}'), "is no A2A agent"),
        (lambda _url, _path: reply(b'{"name": "n"}'), "neither JSON-RPC nor HTTP+JSON"),
        (lambda _url, _path: reply(b"[" * 100_000), "is no A2A agent"),
        (lambda _url, _path: reply(b"", "404 Not Found"), "no agent card"),
        (lambda _url, _path: reply(b"", "401 Unauthorized"), "who asks"),
        (lambda _url, _path: reply(b"", "503 Unavailable"), "HTTP 503"),
        (
            lambda _url, _path: reply(b"", "302 Found", "location: https://e.example/"),
            "https://e.example/",
        ),
        (lambda _url, _path: b"SSH-2.0-OpenSSH\r\n", "connection"),
        (lambda _url, _path: b"", "connection"),
        (lambda _url, _path: reply(b"x" * (ask_http.CARD_MAX_BYTES + 1)), "more than 1024 KB"),
        (lambda _url, _path: reply(b"x", "200 OK", "content-encoding: gzip"), "packs its answer"),
    ],
)
async def test_what_is_no_agent_is_a_service_out_of_reach(
    get: Callable[[str, str], bytes], words: str
) -> None:
    async with server(get=get) as other:
        error = await failure(other.url)
    assert isinstance(error, ServiceUnreachable)
    assert words in str(error)
    assert str(error).isprintable()


@pytest.mark.parametrize(
    ("post", "words"),
    [
        (sse("text"), "is no A2A agent"),
        (sse([1]), "is no A2A agent"),
        (sse({"jsonrpc": "2.0", "id": 1}), "is no A2A agent"),
        (sse(result10(artifactUpdate=7)), "is no A2A agent"),
        (sse(), "stopped talking"),
        (reply(b"never", "500 Broken"), "HTTP 500"),
        (reply(b"not json"), "is no A2A agent"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 900\r\n\r\ndata: {",
            "connection",
        ),
    ],
)
@pytest.mark.parametrize("card", [card10, card03])
async def test_an_answer_that_is_none_is_a_service_out_of_reach(
    post: bytes, words: str, card: Callable[[str], dict[str, Any]]
) -> None:
    get = lambda url, _path: reply(json.dumps(card(url)).encode())  # noqa: E731 -- one line, used once
    async with server(get=get, post=lambda _url, _body: post) as other:
        error = await failure(other.url)
    assert isinstance(error, ServiceUnreachable)
    assert words in str(error) or "stopped talking" in str(error)


async def test_a_server_without_tls_is_named_as_one() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1024)
        writer.write(reply(b"", "400 Bad Request"))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as listening:
        error = await failure(f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
    assert isinstance(error, ServiceUnreachable)
    assert "does not speak TLS" in str(error)


async def test_a_certificate_that_nobody_signed_is_named_as_one(tmp_path: Path) -> None:
    made = tmp_path / "made.pem"
    made.write_bytes(self_signed())
    terms = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    terms.load_cert_chain(made)
    handler = Server().handle
    async with await asyncio.start_server(handler, "127.0.0.1", 0, ssl=terms) as listening:
        error = await failure(f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
    assert isinstance(error, ServiceUnreachable)
    assert "has a certificate that this host does not trust" in str(error)


def self_signed() -> bytes:
    """Return a key and a certificate for 127.0.0.1 that no authority knows."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


async def test_a_refusal_of_the_agent_is_told_in_its_words_without_what_a_terminal_obeys() -> None:
    refusal = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": f"no: {HOSTILE}"}}
    async with server(post=lambda _url, _body: sse(refusal)) as other:
        error = await failure(other.url)
    assert error.exit_code == 1
    assert "before [31mred" in str(error)
    assert str(error).isprintable()


async def test_an_endless_answer_is_cut_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask_http, "ANSWER_MAX_BYTES", 256 * 1024)
    async with server(post=lambda _url, _body: sse(), endless=b"data: " + b"x" * 16384) as other:
        error = await failure(other.url)
    assert isinstance(error, ServiceUnreachable)
    assert "more than 256 KB" in str(error)


# --- addresses ------------------------------------------------------------------------------------------


@pytest.mark.control("TERM-02")
@pytest.mark.parametrize(
    ("asked_at", "named", "goes"),
    [
        ("https://a.example", "https://a.example/rpc", "https://a.example/rpc"),
        ("https://a.example", "https://b.example/rpc", "https://b.example/rpc"),
        ("https://a.example", "http://b.example/rpc", "https://a.example/rpc"),
        ("https://a.example", "http://127.0.0.1:2375/containers", "https://a.example/containers"),
        ("https://a.example", "https://169.254.169.254/latest", "https://a.example/latest"),
        ("https://a.example", "https://intranet.local/x", "https://a.example/x"),
        ("https://a.example", "file:///etc/passwd", "https://a.example/"),
        ("https://a.example", "", "https://a.example/"),
        ("http://127.0.0.1:8011", "https://a.example/", "http://127.0.0.1:8011/"),
        ("http://127.0.0.1:8080", "http://0.0.0.0:9999/a2a", "http://127.0.0.1:8080/a2a"),
        ("http://localhost:8080", "http://localhost:8080/a2a?x=1", "http://localhost:8080/a2a?x=1"),
        ("http://a.example", "http://[::1", "http://a.example/"),
    ],
)
def test_a_card_cannot_send_a_question_where_its_server_could_not_be_meant(
    asked_at: str, named: str, goes: str
) -> None:
    assert ask_http.endpoint(asked_at, named, lambda _host: ["2606:4700::1111", "1.1.1.1"]) == goes


INNER_SPELLINGS = [
    "127.1", "2130706433", "127。0。0。1", "0x7f.1", "0x7f000001", "0", "0177.0.0.1", "169.254.43518",
    "localhost.", "localhost", "LOCALHOST", "metadata", "nas.lan", "db.internal.", "db.internal", "8.8.8.8",
    "[::1]", "[::ffff:127.0.0.1]", "b.example.", "u@127.0.0.1", "b.example\\@127.0.0.1", "ⓛocalhost",
    "\uff11\uff12\uff17.0.0.1",
]  # fmt: skip


@pytest.mark.control("TERM-02")
@pytest.mark.parametrize("host", INNER_SPELLINGS)
def test_no_spelling_of_an_inner_host_is_followed_from_a_card_of_the_internet(host: str) -> None:
    goes = ask_http.endpoint("https://a.example", f"https://{host}/x", lambda _host: ["1.1.1.1"])
    assert goes.startswith("https://a.example/")


@pytest.mark.control("TERM-02")
@pytest.mark.parametrize(
    "addresses",
    [[], ["127.0.0.1"], ["1.1.1.1", "10.0.0.1"], ["::ffff:10.0.0.1"], ["64:ff9b::a00:1"], ["fe80::1%eth0"]],
)
def test_a_name_is_followed_only_when_all_of_its_addresses_are_public(addresses: list[str]) -> None:
    goes = ask_http.endpoint("https://a.example", "https://b.example/x", lambda _host: addresses)
    assert goes == "https://a.example/x"


def test_a_card_may_name_another_port_of_its_own_host_and_a_name_in_another_script() -> None:
    assert ask_http.endpoint("https://a.example", "https://A.example:8443/x") == "https://a.example:8443/x"
    found = ask_http.endpoint("https://a.example", "https://bücher.example/x", lambda _host: ["1.1.1.1"])
    assert found == "https://xn--bcher-kva.example/x"


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://a.example/", "http://a.example"),
        ("https://a.example/agents/x/.well-known/agent-card.json", "https://a.example/agents/x"),
        ("http://a.example:8080/.well-known/agent.json", "http://a.example:8080"),
    ],
)
def test_an_address_may_be_the_cards(url: str, base: str) -> None:
    assert ask_http.base_address(url) == base


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a.example",
        "ftp://a.example",
        "http://",
        "http://u:p@a.example",
        "http://a.example:99999",
        "http://a.example/?q=1",
        "http://a ex",
        "http://a.example/\x1b[2J",
        "http://[::1",
    ],
)
def test_what_is_no_address_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        ask_http.base_address(url)
    assert str(caught.value).isprintable()


# --- what is shown --------------------------------------------------------------------------------------

DONE = Ended("completed", "Hello there, visitor.", "", "t1", "c1")


def on_terminal(monkeypatch: pytest.MonkeyPatch, *, live: bool = True) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: live)


def test_on_a_terminal_a_growing_answer_is_written_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_terminal(monkeypatch)
    view = TextView()
    for event in (Partial("Hello"), Partial("Hello there"), DONE):
        view.show(event)
    assert capsys.readouterr().out == "Hello there, visitor.\n"


def test_on_a_terminal_an_answer_that_begins_anew_is_written_anew(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_terminal(monkeypatch)
    view = TextView()
    for event in (Partial("Let me see"), DONE):
        view.show(event)
    assert capsys.readouterr().out == "Let me see\n\nHello there, visitor.\n"


def test_elsewhere_the_answer_is_written_when_it_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    view = TextView()
    view.show(Partial("Hello"))
    assert capsys.readouterr().out == ""
    view.show(DONE)
    assert capsys.readouterr().out == "Hello there, visitor.\n"


def test_steps_and_how_to_go_on_are_talk(capsys: pytest.CaptureFixture[str]) -> None:
    view = TextView(("ask", "--url", "https://a.example"))
    for event in (Begun("t1", "c1"), Doing("Reading\nfaq.md"), Doing("Reading faq.md"), DONE):
        view.show(event)
    talked = capsys.readouterr().err
    assert talked.splitlines() == [
        "Reading faq.md",
        'to go on: ./gatehouse ask --url https://a.example --context c1 "…"',
    ]


@pytest.mark.control("TERM-01")
@pytest.mark.parametrize("live", [True, False])
def test_no_escape_sequence_of_an_agent_reaches_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], live: bool
) -> None:
    on_terminal(monkeypatch, live=live)
    view = TextView()
    for event in (Doing(HOSTILE), Partial(HOSTILE), Ended("completed", HOSTILE + "!", "", "t", HOSTILE)):
        view.show(event)
    shown = capsys.readouterr()
    assert "before [31mred" in shown.out
    for text in (shown.out, shown.err):
        assert all(sign.isprintable() or sign == "\n" for sign in text)


def test_an_id_that_a_shell_could_run_is_not_offered_for_pasting(capsys: pytest.CaptureFixture[str]) -> None:
    for context in ("$(reboot)", "a'b", "a\\b", "-x", "a b", "a" * 257):
        TextView().show(Ended("completed", "x", "", "t", context))
    assert capsys.readouterr().err == ""


def test_snapshots_do_not_repeat_a_long_answer_at_each_event(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    view = JsonView()
    for length in range(2000, 4000):
        view.show(Partial("x" * length))
    lines = capsys.readouterr().out.splitlines()
    assert 5 < len(lines) < 20
    monkeypatch.setattr("runtime.cli.ask_view.SNAPSHOTS_MAX_CHARS", 5000)
    view = JsonView()
    for number in range(1000):
        view.show(Partial(f"{number}" + "x" * 1000))
    view.show(DONE)
    shown = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
    assert shown == ["snapshot"] * 4 + ["answer"]


def test_json_lines_are_ascii_and_the_last_holds_it_all(capsys: pytest.CaptureFixture[str]) -> None:
    view = JsonView()
    for event in (Begun("t", "c"), Doing(HOSTILE), Partial("Hel"), Ended("completed", HOSTILE, "", "t", "c")):
        view.show(event)
    out = capsys.readouterr().out
    assert out.isascii()
    assert all(line.isprintable() for line in out.splitlines())
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["event"] for line in lines] == ["task", "step", "snapshot", "answer"]
    assert (lines[-1]["text"], lines[-1]["context"], lines[-1]["task"]) == (HOSTILE, "c", "t")


def test_json_ends_with_the_failure(capsys: pytest.CaptureFixture[str]) -> None:
    JsonView().show(Ended("completed", "Busy.", "busy", "t", "c"))
    JsonView().failed(told(ServiceUnreachable("gone", "start it")))
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["event"], first["outcome"], first["error"]["code"]) == ("failed", "busy", "unexpected")
    assert (second["event"], second["text"]) == ("failed", None)
    assert second["error"] == {"code": "service-unreachable", "message": "gone", "mend": "start it"}


def test_an_answer_of_marks_that_nobody_sees_is_none() -> None:
    assert Ended("completed", " \u200b\u202e ", "", "t", "c").failure is not None


# --- the command ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "part"),
    [(("",), "empty"), (("\udcff",), "not UTF-8"), (("x" * (1024 * 1024 + 1),), "larger than 1024 KB")],
)
def test_a_text_that_no_agent_could_be_sent_is_a_usage_error(words: tuple[str, ...], part: str) -> None:
    with pytest.raises(UsageError, match=part):
        read_question(words)


def test_words_without_quotes_are_one_question() -> None:
    assert read_question(("When", "are", "office", "hours?")) == "When are office hours?"


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["--url", "nowhere", "hi"], 2, "neither http:// nor https://"),
        (["--context", "\x1b", "hi"], 2, "--context"),
        (["--timeout", "0", "hi"], 2, "--timeout"),
        ([], 2, "QUESTION"),
        (["--url", "http://127.0.0.1:9", "hi"], 8, "nothing answers at http://127.0.0.1:9"),
    ],
)
def test_a_question_that_cannot_be_asked_ends_with_a_sentence(
    arguments: list[str], code: int, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", *arguments], {}) == code
    shown = capsys.readouterr()
    assert part in shown.err
    assert shown.err.startswith("gatehouse: ")
    assert shown.out == ""


def test_a_stack_of_ones_own_name_is_asked_at_its_port_and_says_who_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docker = FakeDocker(tmp_path / "host")
    docker.stack(container("front", environ={"GATEHOUSE_AGENT": "begona"}), container("ingress", port=9))
    environ = {**docker.environ, "COMPOSE_PROJECT_NAME": "other", "AGENT_PORT": "8", "GATEHOUSE_AGENT": "ada"}
    assert main(["ask", "hi"], environ) == 8
    shown = capsys.readouterr().err
    assert "begona answers, not ada, which GATEHOUSE_AGENT names\n" in shown
    assert "no stack answers at http://127.0.0.1:9" in shown
    docker.stack()
    assert main(["ask", "hi"], environ) == 8
    assert "no stack named other is there (./gatehouse up)" in capsys.readouterr().err


async def test_a_gateway_error_of_our_own_stack_names_status() -> None:
    async with server(get=lambda _url, _path: reply(b"", "502 Bad Gateway")) as other:
        with pytest.raises(ServiceUnreachable) as caught:
            await asked(other.url, own=True)
    assert caught.value.hint == "./gatehouse status"


HUGE: list[Any] = [int("9" * 400), -int("9" * 400), 1e308, 2**64, -1, True, None, [], {}, "x", "9" * 400]


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize("key", ["name", "capabilities", "supportedInterfaces", "skills", "version"])
async def test_a_card_of_any_values_ends_with_a_sentence(key: str, value: Any) -> None:
    def get(url: str, _path: str) -> bytes:
        return reply(json.dumps({**card10(url), key: value}).encode())

    async with server(get=get, post=lambda _url, _body: sse("text")) as other:
        assert isinstance(await failure(other.url), GatehouseError)


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize("key", ["state", "timestamp", "message", "metadata"])
async def test_an_event_of_any_values_ends_with_a_sentence(key: str, value: Any) -> None:
    status = {"state": "TASK_STATE_WORKING", key: value}
    update = result10(statusUpdate={"taskId": "t", "contextId": "c", "status": status})
    async with server(post=lambda _url, _body: sse(update)) as other:
        assert isinstance(await failure(other.url), GatehouseError)


def test_our_own_stack_that_does_not_run_is_named_with_the_mend(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "hi"], {"AGENT_PORT": "9", "PATH": ""}) == 8
    assert "no stack answers at http://127.0.0.1:9 (./gatehouse up" in capsys.readouterr().err


async def started(
    url: str, *arguments: str, stdin: int | None = None, stdout: int = asyncio.subprocess.PIPE
) -> asyncio.subprocess.Process:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPO)}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "runtime.cli", "ask", "--url", url, *arguments,
        env=environ, stdin=stdin, stdout=stdout, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def test_a_question_from_stdin_is_answered_on_stdout() -> None:
    async with serving(ScriptedRunner(), definition(), own_url=True) as front:
        process = await started(front.url, "-", stdin=asyncio.subprocess.PIPE)
        out, err = await asyncio.wait_for(process.communicate("grüße".encode()), WAIT_SECONDS)
    assert (process.returncode, out.decode()) == (0, f"echo: grüße{NOTICE}\n"), err.decode()
    assert b"to go on: ./gatehouse ask --url" in err


async def never(_plan: TurnPlan) -> AsyncGenerator[TurnEvent]:
    yield Step("Read", "Reading faq.md")
    await asyncio.Event().wait()


async def test_an_interrupt_cancels_the_task_on_the_server() -> None:
    async with serving(ScriptedRunner(never), definition(timeout_seconds=60.0), own_url=True) as front:
        process = await started(front.url, "hello")
        await asyncio.wait_for(front.runner.started.wait(), WAIT_SECONDS)
        assert process.stderr is not None
        while b"faq.md" not in await asyncio.wait_for(process.stderr.readline(), WAIT_SECONDS):
            pass
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), WAIT_SECONDS)
        assert front.runner.closed == 1
    assert (process.returncode, out) == (130, b"")
    assert b"interrupted; the agent has ended the task" in err
    assert b"Traceback" not in err


async def test_a_reader_who_has_gone_cancels_the_task_on_the_server() -> None:
    reading, writing = os.pipe()
    async with serving(ScriptedRunner(never), definition(timeout_seconds=60.0), own_url=True) as front:
        os.close(reading)
        process = await started(front.url, "--json", "hello", stdout=writing)
        os.close(writing)
        _, err = await asyncio.wait_for(process.communicate(), WAIT_SECONDS)
        assert front.runner.closed == len(front.runner.plans)
    assert process.returncode == 1
    assert b"Traceback" not in err


async def test_the_time_limit_cancels_the_task_on_the_server() -> None:
    async with serving(ScriptedRunner(never), definition(timeout_seconds=60.0), own_url=True) as front:
        process = await started(front.url, "--timeout", "1.5", "--json", "hello")
        out, err = await asyncio.wait_for(process.communicate(), WAIT_SECONDS)
        assert front.runner.closed == 1
    assert process.returncode == 8
    assert b"no answer within 1.5 s (the agent has ended the task)" in err
    assert json.loads(out.splitlines()[-1])["event"] == "failed"


@pytest.mark.parametrize(
    ("outcome", "mend"), [("busy", "ask again"), ("stopping", "ask again"), ("model", "logs front")]
)
def test_a_question_that_only_came_too_early_is_told_to_come_again(outcome: str, mend: str) -> None:
    failure = Ended("completed", "Not now.", outcome, "t", "c").failure
    assert failure is not None
    assert mend in failure.report()
