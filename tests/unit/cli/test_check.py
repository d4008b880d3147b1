"""`gatehouse check` prints what the check of the instances found, for people, editors and programs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.agents.check import check_instances

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Checkout

REPO = Path(__file__).resolve().parents[3]
PLACE = re.compile(r"instances/bob/[\w./-]+:[0-9]+:[0-9]+: \S.* \(.+\)")


def broken(checkout: Checkout) -> None:
    """Make an instance with three mistakes in two files."""
    folder = checkout.instances / "bob"
    (folder / "grounding").mkdir(parents=True)
    (folder / "grounding/facts.md").write_text("Bob bakes bread.\n")
    (folder / "system-prompt.md").write_text("You speak for Bob. ${nowhere}\n")
    (folder / "agent.yaml").write_text(
        "name: Bob\ngrounding_dir: ${instance_dir}/grounding\ntimeout: 90s\nmodle: sonnet\n"
    )


def test_all_instances_are_checked_and_those_that_can_be_served_are_named(checkout: Checkout) -> None:
    done = checkout.run("check")
    assert done.code == 0
    assert [line.split()[:2] for line in done.out.splitlines() if line.startswith("ok ")] == [
        ["ok", "_template:"],
        ["ok", "ada:"],
    ]


def test_every_mistake_of_an_instance_is_a_line_with_its_place_and_the_count_is_talk(
    checkout: Checkout,
) -> None:
    broken(checkout)
    done = checkout.run("check", "bob")
    assert done.code == 3
    lines = [line for line in done.out.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 3
    assert [line for line in lines if not PLACE.fullmatch(line)] == []
    assert re.fullmatch(r"3 problems(, \d+ warnings?)? in 1 instance\n", done.err)


def test_the_json_is_that_of_the_check_itself(checkout: Checkout) -> None:
    broken(checkout)
    done = checkout.run("check", "--json", "ada", "bob")
    value = json.loads(done.out)
    assert (done.code, done.err, done.out.count("\n")) == (3, "", 1)
    assert (value["ok"], [one["name"] for one in value["instances"]]) == (False, ["ada", "bob"])
    assert set(value["instances"][1]["problems"][0]) == {"file", "line", "col", "path", "message", "mend"}
    same = subprocess.run(
        [sys.executable, "-m", "runtime.agents.check", "--root", checkout.root, "--json", "ada", "bob"],
        cwd=REPO,
        env=checkout.variables(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (same.returncode, same.stdout) == (done.code, done.out)


def test_an_instance_that_is_named_twice_is_checked_once(checkout: Checkout) -> None:
    done = checkout.run("check", "ada", "ada")
    assert done.out.count("ok ada: ") == 1
    assert done.err.endswith(" in 1 instance\n")


def test_an_instance_that_is_not_there_is_a_problem_that_names_those_that_are(checkout: Checkout) -> None:
    done = checkout.run("check", "adda")
    assert done.code == 3
    assert done.out.startswith("instances/adda/agent.yaml: does not exist (")
    assert "ada" in done.out


def test_a_checkout_without_any_instance_is_a_problem(checkout: Checkout) -> None:
    checkout.environment["GATEHOUSE_ROOT"] = str(checkout.root / "nowhere")
    done = checkout.run("check")
    assert done.code == 3
    assert done.out.startswith("instances: holds no instance (")


def test_the_overrides_of_the_environment_are_checked_too(checkout: Checkout) -> None:
    checkout.environment |= {"AGENT_PORT": "http", "PUBLIC_AGENT_URL": "nowhere"}
    done = checkout.run("check", "ada")
    assert done.code == 3
    assert {line.split(": ")[1] for line in done.out.splitlines() if line.startswith("environment: ")} == {
        "PUBLIC_AGENT_URL",
        "AGENT_PORT",
    }


def test_checking_changes_nothing(checkout: Checkout) -> None:
    def state() -> dict[str, tuple[int, bytes]]:
        files = [path for path in checkout.root.rglob("*") if path.is_file()]
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    broken(checkout)
    before = state()
    checkout.run("check")
    assert state() == before


def test_what_a_file_holds_cannot_speak_to_the_terminal(checkout: Checkout) -> None:
    broken(checkout)
    prompt = checkout.instances / "bob/system-prompt.md"
    prompt.write_text("You speak for Bob. ${\x1b]0;title\x07\x1b[2J}\n")
    done = checkout.run("check", "bob")
    assert done.code == 3
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.out) is None


def test_on_a_terminal_ok_is_green_and_no_color_turns_it_off(checkout: Checkout) -> None:
    with checkout.terminal("check", "ada") as terminal:
        assert terminal.end() == 0
    assert "\x1b[32mok\x1b[0m ada: " in terminal.text
    for variable in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        checkout.environment = variable
        with checkout.terminal("check", "ada") as terminal:
            assert terminal.end() == 0
        assert "\nok ada: " in f"\n{terminal.text}"
        assert "\x1b" not in terminal.text


def test_the_order_of_the_names_is_that_of_the_command_line(checkout: Checkout) -> None:
    broken(checkout)
    names = [one.name for one in check_instances(checkout.root, ("bob", "ada"), {})]
    done = checkout.run("check", "--json", "bob", "ada")
    assert [one["name"] for one in json.loads(done.out)["instances"]] == names == ["bob", "ada"]
