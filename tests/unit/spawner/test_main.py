from __future__ import annotations

import asyncio
import signal

import pytest

from runtime.errors import ConfigError, EngineUnavailable, Problem
from runtime.spawner import process as program
from runtime.spawner.service import Spawner
from runtime.spawner.settings import Paths, read_settings


@pytest.fixture
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    run = tmp_path_factory.mktemp("s")
    return Paths(
        root=run,
        packs=run,
        doors=run,
        spawn_socket=run / "spawn.sock",
        model_control_socket=run / "control.sock",
        ops=run,
        seccomp=run / "seccomp.json",
        group=0,
    )


async def test_without_an_engine_it_says_what_to_start_and_leaves_no_socket(paths: Paths) -> None:
    settings = read_settings({"DOCKER_SOCKET_PATH": str(paths.root / "docker.sock")})
    with pytest.raises(EngineUnavailable, match=r"docker\.sock does not exist \(start the Docker engine\)"):
        await program.serve(settings, paths, asyncio.Event())
    assert list(paths.root.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EngineUnavailable("no engine", "start it"), 4),
        (ConfigError((Problem("a.yaml", 1, 2, "x", "is wrong", "mend it"),)), 3),
        (FileNotFoundError("no such socket"), 4),
    ],
)
def test_a_failed_start_is_an_exit_code_and_a_line_never_a_traceback(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fail(*_arguments: object) -> None:
        raise error

    monkeypatch.setattr(program, "serve", fail)
    monkeypatch.setattr("runtime.log.configure", lambda _service: None)
    assert program.run() == code
    assert "Traceback" not in "".join(capsys.readouterr())


def test_sigterm_stops_it_with_exit_code_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    async def until(_settings: object, _paths: object, stop: asyncio.Event) -> None:
        signal.raise_signal(signal.SIGTERM)
        async with asyncio.timeout(5):
            await stop.wait()

    monkeypatch.setattr(program, "serve", until)
    monkeypatch.setattr("runtime.log.configure", lambda _service: None)
    assert program.run() == 0


@pytest.mark.parametrize("clock", ["keep_reaping", "keep_sweeping"])
async def test_a_clock_that_dies_ends_the_process_instead_of_leaving_it_without_one(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, clock: str
) -> None:
    class Broken(Spawner):
        async def prepare(self) -> None:
            self.not_ready = None

    async def die(_self: object) -> None:
        raise LookupError("a bug in it")

    monkeypatch.setattr(Broken, clock, die)
    monkeypatch.setattr(program, "Spawner", Broken)
    with pytest.raises(LookupError, match="a bug in it"):
        async with asyncio.timeout(5):
            await program.serve(read_settings({}), paths, asyncio.Event())
