"""`logs` against a docker client that plays answers; how a line is read is in test_log_lines.py."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from pathlib import Path

import pytest

from runtime.cli.engine import Engine
from runtime.cli.log_source import follow
from runtime.cli.main import main
from tests.harness.fake_docker import FakeDocker, container

REPO = Path(__file__).resolve().parents[3]
ENOUGH_SECONDS = 30.0
FRONT = (
    '2026-05-01T12:00:00.100000000Z {"event": "serving", "service": "front", "level": "info"}\n'
    '2026-05-01T12:00:03.000000001Z {"event": "turn", "service": "front", "outcome": "answered"}\n'
)
SPAWNER = '2026-05-01T12:00:03.000000000Z {"event": "turn-ended", "service": "spawner", "level": "info"}\n'
INGRESS = "2026-05-01T12:00:01.5Z ingress: \x1b]0;owned\x07listening\n"


@pytest.fixture
def docker(tmp_path: Path) -> FakeDocker:
    fake = FakeDocker(tmp_path / "host")
    fake.stack(container("front"), container("spawner"), container("ingress", health=""))
    fake.answer("logs", "id-of-front", stderr=FRONT)
    fake.answer("logs", "id-of-spawner", stderr=SPAWNER)
    fake.answer("logs", "id-of-ingress", stderr=INGRESS)
    return fake


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_the_lines_of_all_services_come_in_one_order_of_time(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["logs"], docker.environ) == 0
    shown = lines(capsys)
    assert [line.split(maxsplit=2)[2] for line in shown] == [
        "front    serving",
        "ingress  ingress: ]0;ownedlistening",
        "spawner  turn-ended",
        "front    turn answered in 0.00 s",
    ]


def test_the_tail_is_of_all_services_together(docker: FakeDocker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "--tail", "2"], docker.environ) == 0
    assert [line.split()[3] for line in lines(capsys)] == ["turn-ended", "turn"]
    assert all("--tail=2" in arguments for arguments, _ in docker.calls("logs"))


def test_named_services_alone_are_read(docker: FakeDocker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "spawner", "--since", "10m"], docker.environ) == 0
    assert len(lines(capsys)) == 1
    ((arguments, _),) = docker.calls("logs")
    assert "--since=10m" in arguments


def test_json_gives_the_services_own_lines_and_wraps_what_is_none(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["logs", "--json"], docker.environ) == 0
    shown = lines(capsys)
    assert shown[0] == '{"event": "serving", "service": "front", "level": "info"}'
    wrapped = json.loads(shown[1])
    assert (wrapped["service"], wrapped["text"]) == ("ingress", "ingress: \x1b]0;owned\x07listening")
    assert all(line.isascii() and line.isprintable() for line in shown)


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["nobody"], 2, "no service is named 'nobody'"),
        (["frnt"], 2, "(did you mean front?)"),
        (["modelproxy"], 8, "has no modelproxy"),
        (["--since", "yesterday"], 2, "--since is no time"),
        (["--since", "--follow"], 2, "--since"),
        (["--tail", "-1"], 2, "--tail"),
        (["--tail", "many"], 2, "--tail is no number"),
    ],
)
def test_what_cannot_be_shown_is_said(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, part: str
) -> None:
    assert main(["logs", *arguments], docker.environ) == code
    assert part in capsys.readouterr().err


def test_what_an_image_calls_itself_is_no_service_unless_it_is_a_plain_name(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.stack(container("front"), container("front\x1b[2J"), container("Front"), container(""))
    assert main(["logs"], docker.environ) == 0
    assert len(lines(capsys)) == 2
    docker.stack(container("front"), container("front"))
    assert main(["logs"], docker.environ) == 8
    assert "has 2 containers of front (see docker ps" in capsys.readouterr().err


def test_a_stack_of_another_checkout_is_not_ours(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    front = container("front")
    front["Config"]["Labels"]["com.docker.compose.project.working_dir"] = str(tmp_path)
    docker.stack(front)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert main(["logs"], {**docker.environ, "GATEHOUSE_ROOT": str(link)}) == 0
    capsys.readouterr()
    assert main(["logs"], {**docker.environ, "GATEHOUSE_ROOT": "/elsewhere"}) == 8
    assert f"runs from {tmp_path}, another checkout" in capsys.readouterr().err


def test_without_a_stack_the_mend_is_up(docker: FakeDocker, capsys: pytest.CaptureFixture[str]) -> None:
    docker.stack()
    assert main(["logs"], docker.environ) == 8
    assert "there is no stack named gatehouse (./gatehouse up)" in capsys.readouterr().err


def test_an_engine_that_does_not_answer_is_named(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.answer("logs", stderr="Cannot connect to the Docker daemon at unix:///x. Is it running?\n", code=1)
    assert main(["logs"], docker.environ) == 4
    assert "engine-unavailable" in capsys.readouterr().err


async def test_following_goes_on_behind_the_newest_line_and_ends_with_an_interrupt(
    docker: FakeDocker,
) -> None:
    more = '2026-05-01T12:00:09.000000000Z {"event": "later", "service": "front"}\n'
    docker.stack(container("front"))
    docker.answer("logs", "--follow", stdout=more, hangs=True)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "runtime.cli", "logs", "--follow", "--tail", "1",
        env={**docker.environ, "PYTHONPATH": str(REPO)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    for word in (b"turn answered", b"later"):
        assert word in await asyncio.wait_for(process.stdout.readline(), ENOUGH_SECONDS)
    process.send_signal(signal.SIGINT)
    _, err = await asyncio.wait_for(process.communicate(), ENOUGH_SECONDS)
    assert (process.returncode, err) == (130, b"")
    ((arguments, _),) = docker.calls("logs", "--follow")
    assert "--since=1777636803.000000002" in arguments


async def test_following_goes_on_with_a_service_that_is_started_anew(
    docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.cli.log_source.AGAIN_SECONDS", 0.01)
    old, new = container("front"), {**container("front"), "Id": "id-of-the-next"}
    docker.stack(old)
    docker.answer("--follow", "id-of-front", stderr="2026-05-01T12:00:03.5Z first\n")
    docker.answer("--follow", "id-of-the-next", stderr="2026-05-01T12:00:09Z second\n", hangs=True)
    engine = Engine("gatehouse", docker.environ)
    said: list[str] = []
    async with asyncio.timeout(ENOUGH_SECONDS), contextlib.aclosing(follow(engine, ["front"], {})) as more:
        async for batch in more:
            said += [line.untrusted_text for line in batch]
            if "second" in said:
                break
            docker.stack(new)
    assert set(said) == {"first", "second"}
    ((arguments, _),) = docker.calls("--follow", "id-of-the-next")
    assert "--since=1777636803.500000001" in arguments


def test_following_ends_when_the_stack_is_gone(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.stack(container("front", state="exited", health=""))
    assert main(["logs", "--follow"], docker.environ) == 0
    assert len(lines(capsys)) == 2
