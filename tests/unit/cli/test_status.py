"""`status` against a docker client that plays answers, and a card over real HTTP."""

from __future__ import annotations

import http.server
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from runtime.cli.main import main
from tests.harness.fake_docker import FakeDocker, container

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CARD = {"name": "Ada \x1b[2JLovelace", "supportedInterfaces": [{"url": "https://ada.example/"}]}
PACK, DIGEST = "d1c8016c81f7" * 5, "fd35d4a63157" * 5
AGENT = {"digest": DIGEST, "pack": PACK, "hidden": [], "not_inlined": [], "running": 0, "stale": False}
FRONT = {
    "service": "front",
    "agent": "ada",
    "digest": DIGEST,
    "pack": PACK,
    "demo": True,
    "reason": None,
    "running": 1,
    "loaded_at": 1777636800.0,
}
SPAWNER = {"service": "spawner", "ready": True, "reason": None, "running": 1, "loaded_at": 1777636800.0}
PROXY = {
    "service": "modelproxy",
    "demo": True,
    "doors": 1,
    "day": "2026-05-01",
    "spent_today_usd": {"ada": 0.25},
    "daily_limit_usd": 5.0,
}
TURN = '2026-05-01T12:00:03Z {"event": "turn", "outcome": "answered", "total_ms": 1150, "requests": 0}\n'


@pytest.fixture
def port() -> Iterator[int]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(CARD).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture
def docker(tmp_path: Path, port: int) -> FakeDocker:
    fake = FakeDocker(tmp_path / "host")
    fake.stack(
        container("modelproxy"),
        container("spawner"),
        container("front", environ={"GATEHOUSE_AGENT": "ada"}),
        container("ingress", port=port),
    )
    fake.answer("runtime.health front status", stdout=json.dumps(FRONT))
    fake.answer("runtime.health modelproxy status", stdout=json.dumps(PROXY))
    spawner(fake)
    fake.answer("logs", "id-of-front", stderr=TURN)
    return fake


def spawner(fake: FakeDocker, **agent: Any) -> None:
    told = SPAWNER | {"agents": {"ada": AGENT | agent}}
    fake.answer("runtime.health spawner status", stdout=json.dumps(told))


def rows(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    first, *others = capsys.readouterr().out.splitlines()
    return {"": first, **{line.split(maxsplit=1)[0]: line.split(maxsplit=1)[1] for line in others}}


def test_one_screen_says_what_is_served_and_how_it_is(
    docker: FakeDocker, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status"], docker.environ) == 0
    told = rows(capsys)
    assert told[""] == "Ada [2JLovelace (ada): ready"
    assert told["address"] == f"http://127.0.0.1:{port}/"
    assert told["public"] == "https://ada.example/"
    assert told["model"].startswith("demo")
    assert told["turns"] == "1 running"
    assert told["loaded"].startswith("pack d1c8016c81f7, definition fd35d4a63157, 2026-05-0")
    assert told["files"] == "as loaded"
    assert told["money"] == "0.2500 of 5.00 US dollars spent on 2026-05-01 (UTC)"
    assert told["newest"] == "answered in 1.15 s"
    assert told["services"] == "ingress healthy, front healthy, spawner healthy, modelproxy healthy"


def test_json_holds_all_of_it(docker: FakeDocker, port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--json"], docker.environ) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "ready": True,
        "reason": None,
        "model": "demo",
        "project": "gatehouse",
        "services": [
            {"name": name, "state": "healthy", "restarts": 0, "reason": None}
            for name in ("ingress", "front", "spawner", "modelproxy")
        ],
        "agent": "ada",
        "name": "Ada [2JLovelace",
        "port": port,
        "public_url": "https://ada.example/",
        "running": 1,
        "digest": DIGEST,
        "front_digest": DIGEST,
        "pack": PACK,
        "loaded_at": 1777636800.0,
        "stale": False,
        "stale_detail": None,
        "problems": [],
        "left_out": [],
        "needs_up": ["port"],
        "spent_today_usd": 0.25,
        "daily_limit_usd": 5.0,
        "day": "2026-05-01",
        "newest_turn": {"event": "turn", "outcome": "answered", "total_ms": 1150, "requests": 0},
        "error": None,
    }


def test_a_port_and_an_override_that_wait_for_up_are_told_and_the_operators_port_decides(
    docker: FakeDocker, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status"], {**docker.environ, "CLAUDE_MODEL": "opus"}) == 0
    assert rows(capsys)["waiting"] == "CLAUDE_MODEL, port: run ./gatehouse up"
    docker.stack(
        container("modelproxy"),
        container("spawner", environ={"AGENT_PORT": str(port)}),
        container("front", environ={"GATEHOUSE_AGENT": "ada"}),
        container("ingress", port=port),
    )
    assert main(["status"], {**docker.environ, "AGENT_PORT": str(port)}) == 0
    assert "waiting" not in rows(capsys)


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ({"stale": True}, "changed since: run ./gatehouse reload"),
        ({"stale": True, "problems": [{}, {}]}, "changed since, with 2 mistakes: ./gatehouse check ada"),
        ({"stale": None, "detail": "the volume is full"}, "not known: the volume is full"),
        ({"stale": "?"}, "not known"),
    ],
)
def test_files_that_differ_from_what_is_loaded_are_told(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str], agent: dict[str, Any], words: str
) -> None:
    spawner(docker, **agent)
    assert main(["status"], docker.environ) == 0
    assert rows(capsys)["files"] == words


def test_a_front_that_has_another_definition_than_the_spawner_is_told(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.answer("runtime.health front status", stdout=json.dumps(FRONT | {"digest": "0123456789abcdef"}))
    assert main(["status"], docker.environ) == 0
    assert "the front has 0123456789ab still: ./gatehouse reload" in rows(capsys)["loaded"]


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1e999", "9" * 400, "9" * 14])
def test_a_broken_number_of_a_service_or_in_its_log_is_no_traceback(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str], number: str
) -> None:
    told = json.dumps(SPAWNER | {"agents": {"ada": AGENT}}).replace("1777636800.0", number)
    docker.answer("runtime.health spawner status", stdout=told)
    docker.answer("logs", "id-of-front", stderr=TURN.replace("1150", number))
    assert main(["status"], docker.environ) == 0
    assert "ada): ready" in capsys.readouterr().out


def test_a_port_that_is_none_is_a_usage_error(docker: FakeDocker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status"], {**docker.environ, "AGENT_PORT": "abc"}) == 2
    assert "AGENT_PORT is not a port: abc" in capsys.readouterr().err


def test_what_was_left_out_of_the_pack_is_named(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    spawner(docker, hidden=[".git", "a\x1b[2J"], not_inlined=["big.md: too large", "x.md"])
    assert main(["status"], docker.environ) == 0
    assert rows(capsys)["left"] == "out   .git, a[2J, big.md: too large and 1 more"


def test_what_nobody_could_tell_is_not_known(docker: FakeDocker, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("front", "spawner", "modelproxy"):
        docker.answer(f"runtime.health {name} status", stdout="{}")
    docker.answer("logs", "id-of-front")
    assert main(["status"], docker.environ) == 0
    told = rows(capsys)
    assert {told[key] for key in ("model", "turns", "loaded", "files", "money")} == {"not known"}
    assert told["newest"] == "none in the log"


def test_the_service_that_keeps_the_others_waiting_is_named_with_its_reason(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.stack(
        container("modelproxy"),
        container("spawner", health="unhealthy"),
        container("front", health="unhealthy"),
        container("ingress"),
    )
    docker.answer(
        "runtime.health spawner status", stdout=json.dumps(SPAWNER | {"reason": "the engine does not answer"})
    )
    docker.answer(
        "runtime.health front status", stdout=json.dumps(FRONT | {"reason": "the spawner is not ready"})
    )
    assert main(["status"], docker.environ) == 8
    shown = capsys.readouterr()
    assert "spawner is not ready: the engine does not answer (./gatehouse logs spawner)" in shown.err
    assert "ada: not ready" in shown.out


def test_a_service_that_has_ended_is_named_with_its_exit_code(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.stack(
        container("modelproxy", state="exited", exit_code=7, health=""),
        container("spawner"),
        container("front"),
        container("ingress"),
    )
    assert main(["status", "--json"], docker.environ) == 8
    told = json.loads(capsys.readouterr().out)
    assert told["ready"] is False
    assert told["reason"] == "modelproxy: its container is exited with 7"


def test_a_service_that_is_not_there_is_named(docker: FakeDocker, capsys: pytest.CaptureFixture[str]) -> None:
    docker.stack(container("modelproxy"), container("spawner"), container("front"))
    assert main(["status"], docker.environ) == 8
    assert "ingress is not ready: there is no container of it (./gatehouse up)" in capsys.readouterr().err


def test_a_port_that_gives_no_card_is_not_ready(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.stack(
        container("modelproxy"), container("spawner"), container("front"), container("ingress", port=9)
    )
    assert main(["status"], docker.environ) == 8
    assert "no card comes at http://127.0.0.1:9/" in capsys.readouterr().err


def test_a_stack_that_is_older_than_the_checkout_says_so(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.answer("runtime.health spawner status", stderr="usage: python -m runtime.health SERVICE\n", code=2)
    assert main(["status"], docker.environ) == 8
    assert (
        "spawner is not ready: its image is older than this checkout (./gatehouse up)"
        in capsys.readouterr().err
    )


def test_when_nothing_runs_that_is_said(docker: FakeDocker, capsys: pytest.CaptureFixture[str]) -> None:
    docker.stack()
    assert main(["status", "--json"], docker.environ) == 8
    shown = capsys.readouterr()
    assert json.loads(shown.out)["reason"] == "no stack named gatehouse is there"
    assert shown.err == "gatehouse: service-unreachable: no stack named gatehouse is there (./gatehouse up)\n"


@pytest.mark.parametrize(
    ("complaint", "words"),
    [
        ("Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", "Cannot connect"),
        ("permission denied while trying to connect to the Docker daemon socket", "use sudo, or join"),
    ],
)
def test_an_engine_that_does_not_answer_is_said(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str], complaint: str, words: str
) -> None:
    docker.answer("ps --all", stderr=f"{complaint}\n", code=1)
    assert main(["status"], docker.environ) == 4
    shown = capsys.readouterr().err
    assert shown.startswith("gatehouse: engine-unavailable: ")
    assert words in shown


def test_a_host_without_docker_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status"], {"PATH": str(tmp_path)}) == 4
    assert "there is no docker on the PATH" in capsys.readouterr().err
