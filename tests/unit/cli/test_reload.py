"""`reload` against a docker client that plays the services' answers, with an instance's real files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from runtime import layout
from runtime.cli.main import main
from tests.harness.fake_docker import FakeDocker, container

REPO = Path(__file__).resolve().parents[3]
OLD, NEW = "a1b2c3d4e5f6" * 5, "c3d4e5f6a1b2" * 5
PROBLEM = {
    "file": "instances/ada/grounding/x.md",
    "line": 0,
    "col": 0,
    "path": "",
    "message": "is a link\x1b[2J",
    "mend": "copy it",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with one instance, ada."""
    shutil.copytree(REPO / "instances" / "ada", tmp_path / "instances" / "ada")
    return tmp_path


@pytest.fixture
def docker(tmp_path: Path, root: Path) -> FakeDocker:
    fake = FakeDocker(tmp_path / "host")
    fake.stack(
        container("front", environ={"GATEHOUSE_AGENT": "ada"}),
        container("spawner", mounts={str(layout.INSTANCES): str(root / "instances")}),
    )
    status(fake, pack=OLD, digest=OLD)
    spawner(fake, pack=NEW, digest=NEW)
    front(fake)
    return fake


def status(fake: FakeDocker, **agent: Any) -> None:
    fake.answer("runtime.health spawner status", stdout=json.dumps({"agents": {"ada": agent}}))


def spawner(fake: FakeDocker, *, changed: bool = True, **agent: Any) -> None:
    told = {"agents": {"ada": {**agent, "changed": changed}}}
    fake.answer("runtime.health spawner reload", stdout=json.dumps(told))


def front(fake: FakeDocker, *, changed: bool = True, **more: Any) -> None:
    told = {"agent": "ada", "digest": NEW, "changed": changed, **more}
    fake.answer("runtime.health front reload", stdout=json.dumps(told))


def reload(docker: FakeDocker, root: Path, *arguments: str, **environ: str) -> int:
    return main(["reload", *arguments], {**docker.environ, "GATEHOUSE_ROOT": str(root), **environ})


def asked(docker: FakeDocker) -> list[str]:
    return [arguments[-2] for arguments, _ in docker.calls("runtime.health", "reload")]


def test_the_spawner_takes_the_files_and_then_the_front_and_what_changed_is_said(
    docker: FakeDocker, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reload(docker, root) == 0
    assert asked(docker) == ["spawner", "front"]
    assert capsys.readouterr().out == (
        "ada: pack a1b2c3d4e5f6 -> c3d4e5f6a1b2, definition a1b2c3d4e5f6 -> c3d4e5f6a1b2\n"
    )


def test_a_document_alone_changes_the_pack_alone(
    docker: FakeDocker, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spawner(docker, pack=NEW, digest=OLD)
    front(docker, changed=False)
    assert reload(docker, root) == 0
    assert capsys.readouterr().out == "ada: pack a1b2c3d4e5f6 -> c3d4e5f6a1b2\n"


def test_that_nothing_changed_is_said(
    docker: FakeDocker, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spawner(docker, pack=OLD, digest=OLD, changed=False)
    front(docker, changed=False)
    assert reload(docker, root) == 0
    assert capsys.readouterr().out == "ada: nothing changed (pack a1b2c3d4e5f6)\n"


def test_a_front_that_catches_up_is_said(
    docker: FakeDocker, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spawner(docker, pack=OLD, digest=OLD, changed=False)
    assert reload(docker, root) == 0
    assert capsys.readouterr().out == "ada: the front took the definition a1b2c3d4e5f6 of the spawner\n"


def test_mistakes_in_the_files_are_all_told_before_any_service_is_asked(
    docker: FakeDocker, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (root / "instances" / "ada" / "agent.yaml").open("a") as file:
        file.write("\nnonsense: 1\nmax_turns: many\n")
    assert reload(docker, root) == 3
    shown = capsys.readouterr()
    assert asked(docker) == []
    assert shown.out == ""
    assert all(
        line.startswith("gatehouse: config-invalid: instances/ada/") for line in shown.err.splitlines()
    )
    assert "nonsense" in shown.err
    assert "max_turns" in shown.err


def test_what_the_spawner_finds_wrong_is_told_and_the_front_is_not_asked(
    docker: FakeDocker, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = json.dumps({"error": "config-invalid", "problems": [PROBLEM]})
    docker.answer("runtime.health spawner reload", stdout=refused, code=3)
    assert reload(docker, root, "--json") == 3
    shown = capsys.readouterr()
    assert asked(docker) == ["spawner"]
    assert shown.err == ("gatehouse: config-invalid: instances/ada/grounding/x.md: is a link[2J (copy it)\n")
    told = json.loads(shown.out)
    assert (told["ok"], told["step"], len(told["problems"])) == (False, "spawner", 1)


@pytest.mark.parametrize(
    ("code", "body", "name"),
    [
        (8, {"error": "definition-mismatch", "detail": "another definition"}, "definition-mismatch"),
        (1, {"error": "service-unreachable", "detail": "another definition"}, "service-unreachable"),
        (3, {"error": "config-invalid", "problems": [PROBLEM]}, "service-unreachable"),
    ],
)
def test_a_front_that_did_not_follow_is_told_with_the_mend(
    docker: FakeDocker,
    root: Path,
    capsys: pytest.CaptureFixture[str],
    code: int,
    body: dict[str, Any],
    name: str,
) -> None:
    docker.answer("runtime.health front reload", stdout=json.dumps(body), code=code)
    assert reload(docker, root) == 8
    shown = capsys.readouterr().err
    assert shown.startswith(
        f"gatehouse: {name}: turns run on the files as they are now (pack c3d4e5f6a1b2), but"
    )
    assert "./gatehouse reload once more; if it stays so, ./gatehouse up" in shown


def test_a_spawner_that_reloaded_nothing_says_why(
    docker: FakeDocker, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.answer(
        "runtime.health spawner reload", stdout='{"error": "x", "detail": "it is stopping"}', code=1
    )
    assert reload(docker, root) == 8
    assert (
        "the spawner reloaded nothing: it is stopping (./gatehouse logs spawner)" in capsys.readouterr().err
    )
    assert asked(docker) == ["spawner"]


def test_a_folder_that_is_not_mounted_needs_up(
    docker: FakeDocker, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "documents"
    shutil.copytree(root / "instances" / "ada" / "grounding", outside)
    path = root / "instances" / "ada" / "agent.yaml"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("grounding_dir:")]
    path.write_text("\n".join([*lines, f"grounding_dir: {outside}"]) + "\n")
    assert reload(docker, root) == 4
    shown = capsys.readouterr().err
    assert (
        f"the running stack cannot see {outside} (folders are mounted at a start: run ./gatehouse up)"
        in shown
    )
    assert asked(docker) == []


def test_an_override_that_the_stack_was_not_started_with_waits_for_up(
    docker: FakeDocker, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reload(docker, root, CLAUDE_MODEL="opus") == 0
    assert "not taken over before ./gatehouse up: CLAUDE_MODEL" in capsys.readouterr().err


def test_a_binary_that_up_refuses_does_not_wait_for_up(
    docker: FakeDocker, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reload(docker, root, "--json", CLAUDE_BINARY="/x") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["needs_up"] == []
    assert shown.err == "CLAUDE_BINARY does nothing in the stack: it is for runs without a sandbox\n"


@pytest.mark.parametrize(
    ("port", "environ", "needs"),
    [
        ("8123", {}, ["port"]),
        ("8011", {}, []),
        (None, {}, []),
        ("8123", {"AGENT_PORT": "8011"}, []),
        ("8123", {"AGENT_PORT": ""}, ["port"]),
    ],
)
def test_a_changed_port_waits_for_up_where_no_variable_decides_it(
    docker: FakeDocker,
    root: Path,
    capsys: pytest.CaptureFixture[str],
    port: str | None,
    environ: dict[str, str],
    needs: list[str],
) -> None:
    in_stack = {"AGENT_PORT": "8011"}
    docker.stack(
        container("front", environ={"GATEHOUSE_AGENT": "ada", **in_stack}),
        container("spawner", environ=in_stack, mounts={str(layout.INSTANCES): str(root / "instances")}),
        container("ingress", port=8011),
    )
    path = root / "instances" / "ada" / "agent.yaml"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("port:")]
    path.write_text("\n".join([*lines, *([f"port: {port}"] if port else [])]) + "\n")
    front(docker, restart=needs)
    assert reload(docker, root, "--json", **environ) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["needs_up"] == needs
    assert ("not taken over before ./gatehouse up: port\n" in shown.err) is bool(needs)


def test_what_the_front_leaves_for_a_restart_waits_for_up(
    docker: FakeDocker, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    front(docker, restart=["port"])
    assert reload(docker, root, "--json") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["needs_up"] == ["port"]
    assert "not taken over before ./gatehouse up: port" in shown.err


def test_a_stack_that_is_older_than_the_checkout_is_not_asked_to_reload(
    docker: FakeDocker, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.answer("runtime.health spawner status", stderr="usage: python -m runtime.health SERVICE\n", code=2)
    assert reload(docker, root) == 5
    assert "./gatehouse up" in capsys.readouterr().err
    assert asked(docker) == []


def test_files_of_another_checkout_are_the_ones_that_are_checked(
    docker: FakeDocker, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "instances" / "ada" / "agent.yaml").write_text("nonsense: 1\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert reload(docker, elsewhere) == 3
    assert f"reads its instances from {root / 'instances'}" in capsys.readouterr().err


def test_files_that_are_not_on_this_host_are_left_to_the_services(
    docker: FakeDocker, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(root / "instances")
    assert reload(docker, root) == 0
    assert "is not on this host: the services check their files themselves" in capsys.readouterr().err


@pytest.mark.parametrize("service", ["front", "spawner"])
def test_without_a_service_nothing_is_asked(
    docker: FakeDocker, root: Path, capsys: pytest.CaptureFixture[str], service: str
) -> None:
    docker.stack(
        *(container(name, state="exited" if name == service else "running") for name in ("front", "spawner"))
    )
    assert reload(docker, root) == 8
    assert (
        f"{service} of the stack gatehouse is exited with 0 (./gatehouse logs {service})"
        in capsys.readouterr().err
    )
    assert asked(docker) == []
