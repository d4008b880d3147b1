"""`forget` against a docker client that plays the front's answers, and on a terminal of its own."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from runtime.cli.forget import STAYS
from runtime.cli.main import main
from tests.harness.fake_docker import FakeDocker, container

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Checkout

ID = "7d0c1a52-6a0e-4d55-9c3e-0d3f6f1f2f61"
COUNTS = {"contexts": 1, "tasks": 2, "cancelled": 0}
WORD = "runtime.health front forget"


@pytest.fixture
def docker(tmp_path: Path) -> FakeDocker:
    fake = FakeDocker(tmp_path / "host")
    fake.stack(container("front"))
    fake.answer(WORD, stdout=json.dumps(COUNTS))
    return fake


def forget(docker: FakeDocker, *words: str) -> int:
    return main(["forget", *words], {**docker.environ, "GATEHOUSE_ROOT": str(docker.folder.parent)})


def asked(docker: FakeDocker) -> list[Any]:
    return [json.loads(stdin) for _, stdin in docker.calls(WORD)]


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (("--context", ID), {"context": ID}),
        (("--task", f" {ID}\n"), {"task": ID}),
        (("--all", "--yes"), {"all": True}),
    ],
)
def test_the_front_is_asked_on_stdin_so_that_no_argument_holds_the_id(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], body: Any
) -> None:
    assert forget(docker, *words) == 0
    assert asked(docker) == [body]
    assert not any(ID in word for call, _ in docker.calls() for word in call)
    assert "--interactive" in docker.calls(WORD)[0][0]
    assert capsys.readouterr() == ("forgotten: 1 conversation, 2 tasks, 0 running turns\n", f"{STAYS}\n")


def test_a_dash_takes_the_id_from_stdin(docker: FakeDocker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"  {ID}\nmore\n".encode())))
    assert forget(docker, "--context", "-") == 0
    assert asked(docker) == [{"context": ID}]


def test_an_id_that_is_not_known_is_said_and_is_no_failure(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.answer(WORD, stdout=json.dumps(dict.fromkeys(COUNTS, 0)))
    assert forget(docker, "--context", ID) == 0
    assert capsys.readouterr().out == "nothing was held\n"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--json",),
        ("--context", ID, "--task", ID),
        ("--all", "--yes", "--task", ID),
        ("--context", ""),
        ("--task", " "),
        ("--all",),
        (ID,),
    ],
)
def test_wrong_usage_asks_nobody(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert forget(docker, *words) == 2
    assert capsys.readouterr().err.startswith("gatehouse: usage: ")
    assert docker.calls() == []


def test_all_without_a_terminal_names_the_flag(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert forget(docker, "--all") == 2
    assert "(add --yes)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "code", "sentence"),
    [
        (
            {"code": 2, "stdout": '{"error":"usage","detail":"That is no id.","mend":"give it"}'},
            2,
            "usage: That is no id (give it)",
        ),
        (
            {"code": 1, "stdout": '{"error":"x","detail":"1 of the turns did not end.","mend":"again"}'},
            8,
            "service-unreachable: 1 of the turns did not end (again)",
        ),
        (
            {"code": 1, "stderr": "/run/ops/front.sock: No such file\n"},
            8,
            "service-unreachable: /run/ops/front.sock: No such file (./gatehouse logs front)",
        ),
        (
            {"code": 2, "stderr": "usage: python -m runtime.health SERVICE [health|status|metrics|reload]\n"},
            5,
            "image-missing: the front cannot forget: its image is older than this checkout (./gatehouse up)",
        ),
    ],
)
def test_a_front_that_did_not_forget_is_told_with_the_mend(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str], said: dict[str, Any], code: int, sentence: str
) -> None:
    docker.answer(WORD, **said)
    assert forget(docker, "--task", ID) == code
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"gatehouse: {sentence}\n")


@pytest.mark.parametrize(("answer", "code", "bodies"), [("y\n", 0, [{"all": True}]), ("n\n", 130, [])])
def test_all_asks_on_a_terminal_and_only_yes_forgets(
    docker: FakeDocker, checkout: Checkout, answer: str, code: int, bodies: list[Any]
) -> None:
    checkout.environment |= {**docker.environ, "COMPOSE_PROJECT_NAME": "mine", "NO_COLOR": "1"}
    with checkout.terminal("forget", "--all") as terminal:
        terminal.until("of the stack mine, and end its turns? [y/N]: ").type(answer)
        assert terminal.end() == code
    assert asked(docker) == bodies
    assert ("nothing was forgotten" in terminal.text) is (code == 130)
    assert "\x1b[3" not in terminal.text


def test_a_refused_question_with_json_is_an_interruption(docker: FakeDocker, checkout: Checkout) -> None:
    checkout.environment |= docker.environ
    with checkout.terminal("forget", "--all", "--json") as terminal:
        terminal.until("[y/N]: ").type("\x04")
        assert terminal.end() == 130
    line = terminal.text.partition("{")[2].splitlines()[0]
    assert json.loads("{" + line)["error"]["code"] == "interrupted"
