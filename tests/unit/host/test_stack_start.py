"""`up` ends with an answer or with nothing running; what it makes for this host is exact."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.unit.host.conftest import BODY

if TYPE_CHECKING:
    from tests.unit.host.conftest import Host

SECRETS = ".gatehouse/stacks/gatehouse/secrets"


def test_up_ends_with_the_address_the_model_and_an_example_to_paste(host: Host) -> None:
    host.docker()
    host.environment["AGENT_PORT"] = "8123"
    done = host.run("up")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("URL:    http://127.0.0.1:8123/\nAgent:  ada\nModel:  demo ")
    command = next(line for line in done.stdout.splitlines() if line.startswith("curl "))
    assert command == ("curl -s http://127.0.0.1:8123/ -H 'Content-Type: application/json' -d '" + BODY + "'")
    assert json.loads(BODY)["params"]["message"]["parts"] == [{"kind": "text", "text": "What's `$HOME`?"}]
    assert not [call for call in host.calls() if " down " in call]


def commands(out: str) -> list[str]:
    """Return what `up` prints of ./gatehouse, to be typed next."""
    return re.findall(r"^(?:What it is doing: )?(.*\./gatehouse .*)$", out, re.MULTILINE)


def test_up_names_the_commands_that_go_on_from_there(host: Host) -> None:
    host.docker()
    assert commands(host.run("up").stdout) == [
        './gatehouse ask "When are office hours?"',
        "./gatehouse status",
    ]


def test_what_was_set_for_one_command_is_printed_before_the_next_ones(host: Host) -> None:
    host.docker('"ps --all --quiet --filter label=com.docker.compose.project="*) echo 0123456789ab ;;')
    host.file("checkout/.env", "AGENT_PORT=8123\n")
    assert commands(host.run("up").stdout)[1] == "./gatehouse status"
    host.environment |= {"AGENT_PORT": "8124", "COMPOSE_PROJECT_NAME": "second"}
    assert commands(host.run("up").stdout) == [
        'COMPOSE_PROJECT_NAME=second AGENT_PORT=8124 ./gatehouse ask "When are office hours?"',
        "COMPOSE_PROJECT_NAME=second AGENT_PORT=8124 ./gatehouse status",
    ]


def test_a_card_that_is_not_shown_is_a_service_that_does_not_answer(host: Host) -> None:
    host.docker('*" exec -T ingress python -") cat >/dev/null; exit 1 ;;')
    done = host.run("up")
    assert (done.returncode, done.stdout) == (8, "")
    assert "service-unreachable: the stack runs but does not show its card" in done.stderr


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("port: 8020\n", "8020"),
        ("name: Ada\nport: 8020   # as agreed\nmodel: sonnet\n", "8020"),
        ("name: Ada\r\nport:  8020\r\n", "8020"),
        ("name: Ada\n# port: 8020\n", "8011"),
        ("description: |\n  port: 8020\n", "8011"),
        ("name: Ada\n", "8011"),
    ],
)
def test_without_a_variable_the_port_is_the_instances_own(host: Host, text: str, port: str) -> None:
    host.docker('*"compose "*" up "*) echo "$AGENT_PORT" >"$HOST/published" ;;')
    host.file("checkout/instances/ada/agent.yaml", text)
    host.file("port", port)
    done = host.run("up")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"URL:    http://127.0.0.1:{port}/\n")
    assert (host.folder / "published").read_text() == f"{port}\n"


def test_the_port_of_the_instance_needs_no_word_before_the_next_commands(host: Host) -> None:
    host.docker()
    host.file("checkout/instances/ada/agent.yaml", "port: 8020\n")
    host.file("port", "8020")
    assert commands(host.run("up").stdout)[1] == "./gatehouse status"
    host.environment["AGENT_PORT"] = "8011"
    assert commands(host.run("up").stdout)[1] == "AGENT_PORT=8011 ./gatehouse status"


def test_the_variable_beats_the_instances_port(host: Host) -> None:
    host.docker('*"compose "*" up "*) echo "$AGENT_PORT" >"$HOST/published" ;;')
    host.file("checkout/instances/ada/agent.yaml", "port: 8020\n")
    host.file("port", "8020")
    host.environment["AGENT_PORT"] = "8123"
    done = host.run("up")
    assert done.returncode == 0, done.stderr
    assert (host.folder / "published").read_text() == "8123\n"


def test_a_port_that_the_scripts_and_the_loader_read_differently_stops_the_start(host: Host) -> None:
    host.docker()
    host.file("checkout/instances/ada/agent.yaml", '"port": 8020\n')
    host.file("port", "8020")
    done = host.run("up")
    assert (done.returncode, done.stdout) == (3, "")
    assert (
        "config-invalid: instances/ada/agent.yaml: port: is 8020, but only a line like"
        ' "port: 8020" is understood before the start, and 8011 was taken' in done.stderr
    )
    assert "or set AGENT_PORT" in done.stderr
    assert not [call for call in host.calls() if " up " in call]


def test_up_says_when_the_model_is_live(host: Host) -> None:
    host.docker("""*" exec -T ingress "*) echo '{"status": "ok"}' ;;""")
    assert "\nModel:  live\n" in host.run("up").stdout


@pytest.mark.parametrize(
    ("state", "code", "name"),
    [
        ("spawner exited 3 0 none", 3, "config-invalid"),
        ("spawner restarting 5 2 starting", 5, "image-missing"),
        ("modelproxy restarting 7 1 starting", 7, "secret-unusable"),
        ("front running 0 0 unhealthy", 8, "service-unreachable"),
        ("turn exited 1 0 none", 8, "service-unreachable"),
    ],
)
def test_a_service_that_fails_gives_its_exit_code_and_its_last_words_and_nothing_stays(
    host: Host, state: str, code: int, name: str
) -> None:
    host.docker(
        f'"inspect "*) echo "{state}" ;;',
        '"logs "*) echo "instances/ada/agent.yaml:3:1: unknown key (remove it)" >&2 ;;',
    )
    done = host.run("up")
    service = state.split(maxsplit=1)[0]
    assert done.returncode == code
    assert done.stdout == ""
    assert f"gatehouse: {name}: {service}" in done.stderr
    assert "instances/ada/agent.yaml:3:1: unknown key (remove it)" in done.stderr
    assert f"(see .gatehouse/{service}.log)" in done.stderr
    assert [call for call in host.calls() if " down " in call] == [
        "docker compose --project-name gatehouse down --remove-orphans"
    ]
    assert not (host.tree / ".gatehouse/stacks/gatehouse").exists()


def test_containers_that_compose_stops_to_make_them_anew_are_no_failure(host: Host) -> None:
    listing = "ps --all --quiet --filter label=com.docker.compose.project=gatehouse"
    host.docker(
        f'"{listing}") echo 0123456789ab ;;',
        '"inspect "*) s="exited 0 0 none"; [ ! -e "$HOST/made" ] || s="running 0 0 healthy"',
        '  echo "front $s" ;;',
        '*"compose "*" up "*) sleep 0.7; : >"$HOST/made" ;;',
    )
    done = host.run("up")
    assert done.returncode == 0, done.stderr
    assert "Model:  demo" in done.stdout


def test_a_port_that_is_taken_while_starting_is_still_called_that(host: Host) -> None:
    host.docker(
        '*"compose "*" up "*) echo "Bind for 127.0.0.1 failed: port is already allocated" >&2; exit 1 ;;',
        '"inspect "*) echo "front running 0 0 healthy" ;;',
    )
    done = host.run("up")
    assert done.returncode == 4
    assert "port-in-use: port 8011" in done.stderr
    assert [call for call in host.calls() if " down " in call]


def test_mistakes_in_an_instance_are_told_before_anything_starts(host: Host) -> None:
    host.docker(
        '*" --mounts "*) echo "instances/ada/agent.yaml:2:1: nmae: unknown key (name?)" >&2; exit 3 ;;'
    )
    done = host.run("up")
    assert done.returncode == 3
    assert "instances/ada/agent.yaml:2:1: nmae: unknown key" in done.stderr
    assert not [call for call in host.calls() if " up " in call]


def test_an_interrupted_start_leaves_nothing_running(host: Host) -> None:
    os.mkfifo(host.folder / "reached")
    host.docker(
        '*"compose "*" up "*) echo up >"$HOST/reached"; sleep 30 ;;',
        '"inspect "*) echo "front created 0 0 starting" ;;',
    )
    host.program("id", "echo 0")
    with subprocess.Popen(
        [host.folder / "bin/sh", host.tree / "gatehouse", "up"],
        env=host.variables(),
        cwd=host.tree,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert (host.folder / "reached").read_text() == "up\n"
        process.send_signal(signal.SIGTERM)
        _, talk = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "taking down what was started" in talk
    assert [call for call in host.calls() if " down " in call]


def generated(host: Host) -> dict[str, dict[str, Any]]:
    """Return the services of the file that `up` made."""
    made = yaml.safe_load((host.tree / ".gatehouse/stacks/gatehouse/compose.generated.yaml").read_text())
    return dict(made["services"])


def labels(host: Host) -> dict[str, str]:
    """Run `up` and return what it labels each service with."""
    done = host.run("up")
    assert done.returncode == 0, done.stderr
    return {name: one["labels"]["gatehouse.read"] for name, one in generated(host).items()}


def test_a_changed_file_of_the_agent_makes_front_and_spawner_anew_and_nothing_else(host: Host) -> None:
    host.docker(f"""*" --mounts "*) printf '%s\\t%s\\n' "{host.folder}/notes" /srv/gatehouse/notes ;;""")
    note = host.file("notes/deep/a.md", "one")
    first = labels(host)
    assert labels(host) == first
    note.write_text("two")
    second = labels(host)
    host.file("checkout/instances/ada/agent.yaml", "name: Countess\n")
    third = labels(host)
    for service in ("front", "spawner"):
        assert len({first[service], second[service], third[service]}) == 3
    assert first["modelproxy"] == second["modelproxy"] == third["modelproxy"]


def test_another_key_makes_the_model_proxy_anew_and_nothing_else(host: Host) -> None:
    host.docker('"run "*" --interactive "*) cat >/dev/null ;;')
    without = labels(host)
    host.environment["MODEL_API_KEY_FILE"] = str(host.file("key", "sk-ant-test-0000"))
    first = labels(host)
    assert labels(host) == first
    host.file("key", "sk-ant-test-0000-longer")
    second = labels(host)
    assert len({without["modelproxy"], first["modelproxy"], second["modelproxy"]}) == 3
    assert without["spawner"] == first["spawner"] == second["spawner"]


def test_other_certificates_make_the_model_proxy_anew_and_reach_it_as_a_file_of_its_own(host: Host) -> None:
    host.docker(
        '"run "*" --interactive "*) cat >>"$HOST/received" ;;',
        '*"compose "*" up "*) echo "$MODEL_CA_FILE" >"$HOST/given" ;;',
    )
    without = labels(host)
    host.environment["MODEL_CA_FILE"] = str(host.file("ca.pem", "made-up"))
    first = labels(host)
    assert labels(host) == first
    assert first["modelproxy"] != without["modelproxy"]
    assert first["front"] == without["front"]
    assert (host.folder / "received").read_text() == "made-up" * 2
    assert (host.folder / "given").read_text() == f"{host.tree}/{SECRETS}/model_ca\n"


def test_two_stacks_of_one_checkout_share_neither_secrets_nor_the_generated_file(host: Host) -> None:
    host.docker(
        '"run "*" --interactive "*) echo "$*" >>"$HOST/copies" ;;',
        '"ps --all --quiet --filter label=com.docker.compose.project="*) echo 0123456789ab ;;',
    )
    host.environment["MODEL_API_KEY_FILE"] = str(host.file("key", "sk-ant-test-0000"))
    stacks = host.tree / ".gatehouse" / "stacks"
    for name in ("gatehouse", "second"):
        host.environment["COMPOSE_PROJECT_NAME"] = name
        done = host.run("up")
        assert done.returncode == 0, done.stderr
        (stacks / name / "secrets" / "model_api_key").write_text(name)
    assert host.run("down").returncode == 0
    assert sorted(path.name for path in stacks.iterdir()) == ["gatehouse"]
    assert (stacks / "gatehouse" / "compose.generated.yaml").exists()
    assert (stacks / "gatehouse" / "secrets" / "model_api_key").read_text() == "gatehouse"
    copies = (host.folder / "copies").read_text()
    assert re.findall(r"--volume (\S+):/secrets", copies) == [
        str(stacks / name / "secrets") for name in ("gatehouse", "second")
    ]


def test_the_images_are_built_under_one_name_for_every_stack(host: Host) -> None:
    host.docker()
    host.environment["COMPOSE_PROJECT_NAME"] = "second"
    host.run("up")
    (build,) = [call for call in host.calls() if call.endswith(" build")]
    assert "--project-name gatehouse " in build


def test_the_exit_code_of_a_service_that_was_started_again_is_the_engines(host: Host) -> None:
    host.docker(
        '"inspect "*) echo "spawner running 0 1 starting" ;;',
        '"logs "*) echo "instances/ada/agent.yaml:50:1: grounding_dir does not exist" ;;',
        '"events "*) echo 1; echo 3 ;;',
    )
    done = host.run("up")
    assert done.returncode == 3
    assert "config-invalid: spawner: instances/ada/agent.yaml:50:1" in done.stderr


def test_a_service_that_logs_json_is_quoted_by_its_reason_and_mend(host: Host) -> None:
    line = json.dumps(
        {"code": "config-invalid", "reason": 'a.yaml:1:1: "x"\nb.yaml:2:2: y', "mend": "edit", "event": "x"}
    )
    host.docker(
        '"inspect "*) echo "spawner restarting 3 1 starting" ;;', f"\"logs \"*) printf '%s\\n' '{line}' ;;"
    )
    assert 'spawner: a.yaml:1:1: "x" | b.yaml:2:2: y (edit; see' in host.run("up").stderr


def test_a_service_that_speaks_as_we_do_is_quoted_without_its_prefix(host: Host) -> None:
    host.docker(
        '"inspect "*) echo "ingress exited 4 0 none" ;;',
        '"logs "*) echo "gatehouse: port-in-use: Port 8011 on 0.0.0.0 is taken. (stop what uses it)" >&2 ;;',
    )
    talk = host.run("up").stderr
    assert (
        "gatehouse: host-not-ready: ingress: Port 8011 on 0.0.0.0 is taken. (stop what uses it) (see" in talk
    )


def test_the_generated_file_mounts_what_lies_outside_read_only_and_gives_the_spawner_its_own_uid(
    host: Host,
) -> None:
    name = "it's $HOME: public"
    quoted = name.replace("$", "\\$")
    folder = host.folder / name
    folder.mkdir()
    host.docker(f"""*" --mounts "*) printf '%s\\t%s\\n' "$HOST/{quoted}" /srv/gatehouse/notes ;;""")
    done = host.run("up")
    assert done.returncode == 0, done.stderr
    spawner = generated(host)["spawner"]
    spawner.pop("labels")
    gid = str((host.folder / "var/run/docker.sock").stat().st_gid)
    assert spawner == {
        "environment": {"HOME": str(host.folder / "home")},
        "user": "10202:10101",
        "group_add": [gid],
        "volumes": [
            {
                "type": "bind",
                "source": str(folder).replace("$", "$$"),
                "target": "/srv/gatehouse/notes",
                "read_only": True,
            }
        ],
    }
    assert generated(host)["front"]["environment"] == {"HOME": str(host.folder / "home")}


def test_a_folder_outside_that_is_not_there_is_a_config_error(host: Host) -> None:
    host.docker("""*" --mounts "*) printf '%s\\t%s\\n' /nowhere/notes /nowhere/notes ;;""")
    done = host.run("up")
    assert done.returncode == 3
    assert "instances/ada/agent.yaml: /nowhere/notes: there is no such folder on this host" in done.stderr
    assert not (host.tree / ".gatehouse/stacks/gatehouse/compose.generated.yaml").exists()


def test_with_user_namespaces_the_spawner_keeps_the_default_user(host: Host) -> None:
    host.docker(
        '"info --format {{.SecurityOptions}}") echo "[name=seccomp,profile=builtin name=rootless]" ;;'
    )
    host.run("up")
    assert set(generated(host)["spawner"]) == {"environment", "labels"}


def test_the_key_goes_through_a_pipe_to_a_file_of_the_services_own_and_never_into_an_argument(
    host: Host,
) -> None:
    key = host.file("key", "sk-ant-test-0000")
    host.docker(
        '"run "*" --interactive "*) cat >"$HOST/received" ;;',
        '*"compose "*" up "*) echo "$MODEL_API_KEY_FILE" >"$HOST/given" ;;',
    )
    host.environment["MODEL_API_KEY_FILE"] = str(key)
    done = host.run("up")
    assert done.returncode == 0, done.stderr
    assert (host.folder / "received").read_text() == "sk-ant-test-0000"
    assert (host.folder / "given").read_text() == f"{host.tree}/{SECRETS}/model_api_key\n"
    assert (host.tree / SECRETS).stat().st_mode & 0o777 == 0o700
    assert not [call for call in host.calls() if "sk-ant" in call]


def test_a_command_inside_one_that_holds_the_lock_does_not_wait_for_it(host: Host) -> None:
    host.docker()
    host.environment["GATEHOUSE_LOCKED"] = "1"
    with host.file("checkout/.gatehouse/lock", "").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert host.run("up").returncode == 0
        assert host.run("down").returncode == 0


def test_down_removes_socket_volumes_and_keeps_state(host: Host) -> None:
    volumes = "front-local front-tunnel spawn ctl-model doors ops-front packs state-model anything-else"
    host.docker(
        f'"volume ls "*) for v in {volumes}; do echo "gatehouse_$v"; done ;;',
        '"ps "*gatehouse.turn*) echo feed ;;',
    )
    assert host.run("down").returncode == 0
    assert host.called("docker rm ") == ["docker rm --force feed"]
    removed = [call.removeprefix("docker volume rm gatehouse_") for call in host.called("docker volume rm")]
    assert removed == [name for name in volumes.split() if name not in {"packs", "state-model"}]
    assert not host.called("docker rmi")


def test_down_stops_the_front_while_its_visitors_can_still_be_answered(host: Host) -> None:
    host.docker(
        '"ps --quiet --filter label=com.docker.compose.project=gatehouse --filter'
        ' label=com.docker.compose.service=front") echo 0123456789ab ;;'
    )
    assert host.run("down").returncode == 0
    calls = [call for call in host.calls() if " stop " in call or " down " in call]
    assert calls == [
        "docker stop 0123456789ab",
        "docker compose --project-name gatehouse down --remove-orphans",
    ]


def test_down_all_removes_state_and_images_too(host: Host) -> None:
    host.docker('"volume ls "*) echo gatehouse_state-model ;;')
    assert host.run("down", "--all").returncode == 0
    assert host.called("docker volume rm") == ["docker volume rm gatehouse_state-model"]
    assert len(host.called("docker rmi gatehouse-")) == 5


def test_down_all_keeps_the_images_that_a_container_of_another_stack_was_made_from(host: Host) -> None:
    """What counts is the name it was made from: a later build may have taken that from its image."""
    host.docker(
        '"ps --all --quiet --filter label=com.docker.compose.project") echo 0123456789ab; echo cd ;;',
        '"inspect "*Config.Image*) echo "gatehouse-turn:dev first"; echo "gatehouse-spawner:dev first" ;;',
    )
    host.environment["COMPOSE_PROJECT_NAME"] = "second"
    done = host.run("down", "--all")
    assert done.returncode == 0, done.stderr
    removed = [call.removeprefix("docker rmi gatehouse-") for call in host.called("docker rmi ")]
    assert removed == ["ingress:dev", "front:dev", "modelproxy:dev"]
    for kept in ("turn", "spawner"):
        assert f"gatehouse: kept gatehouse-{kept}:dev, which the stack first uses\n" in done.stderr


@pytest.mark.parametrize("there", [True, False])
def test_the_time_of_a_first_build_is_told_only_when_an_image_is_missing(host: Host, there: bool) -> None:
    host.docker() if there else host.docker('"image inspect "*gatehouse-modelproxy*) exit 1 ;;')
    assert ("a minute or two the first time" in host.run("up").stderr) is not there
