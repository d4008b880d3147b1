"""`just bench` as a command: what it says where something is missing or a figure is missed, its exit code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from tests.bench import __main__ as command
from tests.bench.engine import IMAGES, check_engine
from tests.bench.figures import FIGURES, Figure
from tests.bench.numbers import Bound, Row, Wanted

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench.figures import Bench

GONE = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"


def docker(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "docker"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> None:
    def free(_bench: Bench) -> list[Row]:
        return [Row("free", 1.0)]

    def dear(_bench: Bench) -> list[Row]:
        raise AssertionError("a figure of a stack was measured without one")

    monkeypatch.setattr(
        command, "FIGURES", (Figure("front-rate", free, needs_engine=False), Figure("turn-times", dear))
    )


NO_IMAGE = """case "$4 $5" in *gatehouse-front*) echo "Error: No such image: $5" >&2; exit 1;; esac"""


@pytest.mark.parametrize(
    ("script", "code", "sentence", "mend"),
    [
        (f"echo '{GONE}' >&2; exit 1", 4, "No Docker engine answers", "start it"),
        (NO_IMAGE, 5, "no image gatehouse-front:dev", "docker compose build"),
        ("[ $1 != compose ]", 4, "no compose plugin", "install"),
    ],
)
@pytest.mark.usefixtures("figures")
def test_what_is_missing_is_said_with_its_mend_and_the_other_figures_are_still_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, code: int, sentence: str, mend: str
) -> None:
    docker(tmp_path, monkeypatch, script)
    result = CliRunner().invoke(command.main, [])
    assert result.exit_code == code, result.output
    assert result.stdout == "free: 1.00\n"
    assert sentence in result.stderr
    assert mend in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.usefixtures("figures")
def test_without_a_docker_client_the_exit_code_is_that_of_a_host_that_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = CliRunner().invoke(command.main, ["--json"])
    assert result.exit_code == 4
    assert list(json.loads(result.stdout)) == ["front-rate"]
    assert "install Docker" in result.stderr


@pytest.mark.usefixtures("figures")
def test_a_figure_that_needs_no_engine_asks_for_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = CliRunner().invoke(command.main, ["--only", "front-rate"])
    assert (result.exit_code, result.stderr) == (0, "")


ROWS = {
    "fast": Row("fast", 0.9, wanted=Wanted(Bound.AT_LEAST, 0.8)),
    "slow": Row("slow", 0.7, wanted=Wanted(Bound.AT_LEAST, 0.8)),
    "fat": Row("fat", 200, wanted=Wanted(Bound.AT_MOST, 150, "MB")),
    "plain": Row("plain", 7.0),
}


@pytest.mark.parametrize(
    ("measured", "code", "said"),
    [
        (("fast", "plain"), 0, ""),
        (("fast", "slow", "plain"), 1, "Not as wanted: slow.\n"),
        (("slow", "fat"), 1, "Not as wanted: slow, fat.\n"),
    ],
)
@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_a_figure_that_is_not_what_is_wanted_is_named_and_the_exit_code_is_1(
    monkeypatch: pytest.MonkeyPatch,
    measured: tuple[str, ...],
    code: int,
    said: str,
    arguments: tuple[str, ...],
) -> None:
    figure = Figure("front-rate", lambda _bench: [ROWS[name] for name in measured], needs_engine=False)
    monkeypatch.setattr(command, "FIGURES", (figure,))
    result = CliRunner().invoke(command.main, list(arguments))
    assert (result.exit_code, result.stderr) == (code, said)


def test_what_is_missing_on_the_host_says_more_than_a_figure_that_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Figure("front-rate", lambda _bench: [ROWS["slow"]], needs_engine=False)
    monkeypatch.setattr(command, "FIGURES", (slow, Figure("turn-times", lambda _bench: [])))
    monkeypatch.setenv("PATH", str(tmp_path))
    result = CliRunner().invoke(command.main, [])
    assert result.exit_code == 4
    assert "Not as wanted: slow." in result.stderr


def test_an_engine_with_every_image_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "asked"
    docker(tmp_path, monkeypatch, f'echo "$@" >> {asked}')
    check_engine()
    assert [image in asked.read_text() for image in IMAGES] == [True] * len(IMAGES)


def test_figures_that_need_no_engine_come_first_and_names_are_unique() -> None:
    needs = [figure.needs_engine for figure in FIGURES]
    assert needs == sorted(needs)
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)
