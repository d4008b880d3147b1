"""Settings and files that no service would take are told while the stack that runs goes on serving."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.host.conftest import Host

CONFIG = json.dumps({"services": {"spawner": {"environment": {"TURN_PIDS": "a$$b"}}, "modelproxy": {}}})
ASKED = '"run "*/run/secrets:*'


def touched(host: Host) -> list[str]:
    return [call for call in host.calls() if " up " in call or " down" in call or "--interactive" in call]


@pytest.mark.parametrize(
    ("service", "code", "words"),
    [
        ("modelproxy", 3, "config-invalid: environment: MODEL_DAILY_USD: is no number (write 5.00)"),
        ("modelproxy", 7, "secret-unusable: /run/secrets/model_api_key holds only white space (mend it)"),
        ("modelproxy", 4, "host-not-ready: the certificates in /run/secrets/model_ca cannot be used (mend)"),
        ("spawner", 2, "usage: TURN_CPUS is not a number from 0.1 to 256 (mend it)"),
    ],
)
def test_a_setting_that_a_service_refuses_ends_the_start_before_anything_that_runs_is_touched(
    host: Host, service: str, code: int, words: str
) -> None:
    host.docker(f'{ASKED}" {service}") cat >/dev/null; echo "gatehouse: {words}" >&2; exit {code} ;;')
    before = host.file("checkout/.gatehouse/stacks/gatehouse/compose.generated.yaml", "services: {}\n")
    host.environment["MODEL_API_KEY_FILE"] = str(host.file("key", "sk-ant-test-0000"))
    done = host.run("up")
    assert (done.returncode, done.stdout) == (code, "")
    words = words.replace("/run/secrets/model_api_key", "MODEL_API_KEY_FILE")
    words = words.replace("/run/secrets/model_ca", "MODEL_CA_FILE")
    assert done.stderr.endswith(f"gatehouse: {words}\n")
    assert touched(host) == []
    assert before.read_text() == "services: {}\n"


def test_what_both_refuse_is_told_at_once(host: Host) -> None:
    host.docker(
        f'{ASKED}" spawner") cat >/dev/null; echo "gatehouse: usage: one (mend)" >&2; exit 2 ;;',
        f'{ASKED}" modelproxy") cat >/dev/null; echo "gatehouse: config-invalid: two (mend)" >&2; exit 3 ;;',
    )
    done = host.run("up")
    assert done.returncode == 3
    assert done.stderr.endswith("gatehouse: usage: one (mend)\ngatehouse: config-invalid: two (mend)\n")


def test_a_check_that_breaks_off_is_no_permission_to_start(host: Host) -> None:
    host.docker(f'{ASKED}" spawner") cat >/dev/null; echo "OCI runtime error" >&2; exit 125 ;;')
    done = host.run("up")
    assert done.returncode == 1
    assert (
        "unexpected: the settings of spawner could not be checked (exit 125): OCI runtime error"
        in done.stderr
    )
    assert touched(host) == []


def test_settings_that_compose_cannot_read_are_a_usage_error(host: Host) -> None:
    host.docker('*" config --format json") echo "invalid interpolation format" >&2; exit 15 ;;')
    done = host.run("up")
    assert done.returncode == 2
    assert "usage: docker compose cannot read the settings: invalid interpolation format (" in done.stderr
    assert touched(host) == []


def test_each_service_is_asked_with_composes_environment_and_only_one_with_key_and_certificates(
    host: Host,
) -> None:
    host.docker(
        f"""*" config --format json") printf '%s\\n' '{CONFIG}' ;;""",
        f'{ASKED}) for service; do :; done; cat >"$HOST/asked.$service" ;;',
    )
    host.environment["MODEL_API_KEY_FILE"] = str(host.file("key", "sk-ant-test-0000"))
    host.environment["MODEL_CA_FILE"] = str(host.file("ca.pem", "made-up"))
    done = host.run("up")
    assert done.returncode == 0, done.stderr
    assert (host.folder / "asked.spawner").read_text() == CONFIG + "\n"
    assert (host.folder / "asked.modelproxy").read_text() == CONFIG + "\n\0made-up\0sk-ant-test-0000"
    assert not [call for call in host.calls() if "sk-ant" in call]


def test_a_key_that_comes_through_a_pipe_is_left_in_it_for_the_service(host: Host) -> None:
    host.docker(
        f'{ASKED}" modelproxy") cat >"$HOST/asked" ;;', '"run "*" --interactive "*) cat >"$HOST/received" ;;'
    )
    host.environment["MODEL_API_KEY_FILE"] = "/dev/stdin"
    done = host.run("up", stdin="sk-ant-test-0000")
    assert done.returncode == 0, done.stderr
    assert (host.folder / "asked").read_text().endswith("\0not-read-yet")
    assert (host.folder / "received").read_text() == "sk-ant-test-0000"


def checker(host: Host, body: str) -> None:
    """Make the environment of the author's commands, whose Python does `body`."""
    host.file("checkout/requirements/dev.txt", "")
    python = host.file("checkout/.venv/bin/python", f"#!{host.folder}/bin/sh\n{body}\n")
    python.chmod(0o755)
    host.shell(
        'python_stamp "$GATEHOUSE_ROOT/.venv" dev >.venv/gatehouse.stamp',
        parts="words settings lock apt python",
    )


def test_an_instances_mistakes_are_told_before_an_image_is_built_where_a_python_is_there(host: Host) -> None:
    host.docker()
    host.file("checkout/.env", "CLAUDE_MODEL=no such\n")
    checker(host, 'echo ok; echo "$* $CLAUDE_MODEL" >&2; exit 3')
    done = host.run("up")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"-I -X utf8 -m runtime.agents.check --root {host.tree} ada no such\n"
    assert not host.called("docker")


@pytest.mark.parametrize("body", ["echo Traceback >&2; exit 1", "echo warning: x >&2", "exit 126"])
def test_an_early_look_that_finds_no_mistake_says_nothing(host: Host, body: str) -> None:
    host.docker()
    checker(host, body)
    done = host.run("up")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "warning" not in done.stderr
