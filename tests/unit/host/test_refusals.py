"""Bad input that concerns the host: one sentence with place and mend, the exit code, nothing left behind."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess

    from tests.unit.host.conftest import Host

FEDORA = "ID=fedora\nVERSION_ID=42\n"
LISTENING = "  0: {address}:1F4B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n"


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one sentence; stdout must be empty, and no other line may speak of an error."""
    assert done.stdout == ""
    *talk, sentence = done.stderr.splitlines()
    assert not [line for line in talk if not line.startswith("gatehouse: ")], done.stderr
    return sentence.removeprefix("gatehouse: ")


def started(host: Host) -> list[str]:
    return [call for call in host.calls() if " up " in call]


def test_an_unknown_command_is_a_usage_error(host: Host) -> None:
    done = host.run("fly")
    assert done.returncode == 2
    assert refusal(done) == "usage: unknown command: fly (see ./gatehouse help)"


@pytest.mark.parametrize("arguments", [("up", "now"), ("down", "--everything"), ("test", "tests/unit")])
def test_an_argument_that_a_command_does_not_know_is_a_usage_error(
    host: Host, arguments: tuple[str, str]
) -> None:
    done = host.run(*arguments)
    assert done.returncode == 2
    assert arguments[1] in refusal(done)


def test_help_is_a_result_and_goes_to_stdout(host: Host) -> None:
    done = host.run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "./gatehouse COMMAND" in done.stdout


def test_without_an_engine_another_distribution_gets_a_message_and_no_installation(host: Host) -> None:
    host.file("etc/os-release", FEDORA)
    host.program("apt-get", "")
    done = host.run("up")
    assert done.returncode == 4
    assert refusal(done).startswith(
        "engine-unavailable: no Docker engine answers on this host (install Docker Engine 26.0"
    )
    assert not host.called("apt-get")


def test_without_an_engine_a_user_who_is_not_root_gets_a_message_and_no_installation(host: Host) -> None:
    host.root = False
    host.program("apt-get", "")
    done = host.run("up")
    assert done.returncode == 4
    assert "or run this as root, and it will be installed" in refusal(done)
    assert not host.called("apt-get")


def test_an_engine_that_is_too_old_is_named_with_its_version(host: Host) -> None:
    host.docker('"version "*) echo "api 1.41" ;;')
    done = host.run("up")
    assert done.returncode == 4
    assert refusal(done).startswith(
        "engine-too-old: the Docker engine speaks API 1.41, and 1.45 (Docker 26.0) is the least"
    )
    assert not started(host)


def test_an_installed_engine_that_is_too_old_is_not_started(host: Host) -> None:
    host.docker('"version "*) echo "Cannot connect to the Docker daemon" >&2; exit 1 ;;')
    host.program("dockerd", 'echo "Docker version 20.10.24+dfsg1, build 297e128"')
    done = host.run("up")
    assert done.returncode == 4
    assert "engine-too-old: the installed Docker engine is version 20" in refusal(done)
    assert host.called("dockerd") == ["dockerd --version"]


def test_a_socket_without_permission_names_the_user_and_the_group(host: Host) -> None:
    host.root = False
    host.docker(
        '"version "*) echo "permission denied while trying to connect to the Docker daemon" >&2; exit 1 ;;'
    )
    done = host.run("up")
    assert done.returncode == 4
    assert "visitor has no permission for the engine's socket" in refusal(done)
    assert "usermod -aG docker visitor" in refusal(done)


def test_an_engine_on_another_host_is_refused(host: Host) -> None:
    host.docker()
    host.environment["DOCKER_HOST"] = "tcp://192.0.2.1:2375"
    done = host.run("up")
    assert done.returncode == 4
    assert "tcp://192.0.2.1:2375, which is not on this host" in refusal(done)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ('"compose version"*) exit 1 ;;', "no compose plugin"),
        ('"compose version"*) echo 2.17.2 ;;', "the compose plugin is version 2.17, and 2.23 is the least"),
        ('"buildx version"*) exit 1 ;;', "no buildx plugin"),
    ],
)
def test_a_missing_or_old_plugin_is_named(host: Host, answer: str, words: str) -> None:
    host.docker(answer)
    done = host.run("up")
    assert done.returncode == 4
    assert words in refusal(done)


@pytest.mark.parametrize("version", ["2.23.0", "v2.26.1", "2.26.1-4", "5.0.1"])
def test_newer_compose_plugins_are_taken(host: Host, version: str) -> None:
    host.docker(f'"compose version"*) echo {version} ;;')
    assert host.shell("engine_plugins; echo taken") == "taken\n"


def test_a_full_disk_is_named_before_anything_is_built(host: Host) -> None:
    host.docker('"image inspect "*) exit 1 ;;')
    host.program("df", 'echo Filesystem; echo "/dev/x 100 90 2097152 90% /"')
    done = host.run("up")
    assert done.returncode == 4
    assert f"host-not-ready: {host.folder} has 2048 MiB free, and 4096 MiB are needed" in refusal(done)
    assert not [call for call in host.calls() if call.endswith(" build")]


@pytest.mark.parametrize("address", ["00000000", "0100007F"])
def test_a_port_in_use_is_named_before_anything_is_built(host: Host, address: str) -> None:
    host.docker('"ps "*) ;;')
    host.file("proc/net/tcp", LISTENING.format(address=address))
    done = host.run("up")
    assert done.returncode == 4
    assert (
        refusal(done)
        == "port-in-use: port 8011 of 127.0.0.1 is in use (stop what holds it, or set AGENT_PORT)"
    )
    assert not [call for call in host.calls() if call.endswith(" build")]


def test_the_port_of_the_running_stack_is_not_in_use(host: Host) -> None:
    host.docker()
    host.file("proc/net/tcp", LISTENING.format(address="0100007F"))
    assert host.shell("port_free; echo free") == "free\n"


def test_the_same_port_of_another_address_is_not_in_use(host: Host) -> None:
    host.docker('"ps "*) ;;')
    host.file("proc/net/tcp", LISTENING.format(address="0101A8C0"))
    assert host.shell("port_free; echo free") == "free\n"


@pytest.mark.parametrize("port", ["http", "0", "65536", "-1", "80 80", "999999"])
def test_a_port_that_is_none_is_a_usage_error(host: Host, port: str) -> None:
    host.environment["AGENT_PORT"] = port
    done = host.run("up")
    assert done.returncode == 2
    assert refusal(done).startswith(f"usage: AGENT_PORT is not a port: {port} ")


def test_a_port_of_an_instance_that_is_none_is_a_config_error(host: Host) -> None:
    host.docker()
    host.file("checkout/instances/ada/agent.yaml", "name: Ada\nport: 80111\n")
    done = host.run("up")
    assert done.returncode == 3
    assert refusal(done).startswith("config-invalid: instances/ada/agent.yaml: port: there is no port 80111 ")
    assert not host.called("docker")


@pytest.mark.parametrize("where", ["environment", "file"])
def test_a_cli_of_ones_own_is_a_usage_error_where_turns_run_in_containers(host: Host, where: str) -> None:
    host.docker()
    if where == "environment":
        host.environment["CLAUDE_BINARY"] = "/opt/claude"
    else:
        host.file("checkout/.env", "CLAUDE_BINARY=/opt/claude\n")
    done = host.run("up")
    assert done.returncode == 2
    assert refusal(done).startswith("usage: CLAUDE_BINARY=/opt/claude has no meaning here: ")
    assert "./gatehouse turn ada --sandbox none" in refusal(done)
    assert not host.called("docker")


def test_a_cli_that_is_set_to_nothing_counts_as_not_set(host: Host) -> None:
    host.docker()
    host.file("checkout/.env", "CLAUDE_BINARY=/opt/claude\n")
    host.environment["CLAUDE_BINARY"] = ""
    assert host.run("up").returncode == 0


def test_a_key_file_that_is_not_there_is_never_the_demo(host: Host) -> None:
    host.docker()
    host.environment["MODEL_API_KEY_FILE"] = "/nowhere/key"
    done = host.run("up")
    assert done.returncode == 7
    assert refusal(done).startswith("secret-unusable: MODEL_API_KEY_FILE=/nowhere/key: there is no such file")
    assert not started(host)


def test_a_key_file_that_cannot_be_read_is_never_the_demo(host: Host) -> None:
    host.docker()
    key = host.file("key", "sk-ant-test-0000")
    key.chmod(0)
    host.environment["MODEL_API_KEY_FILE"] = str(key)
    (host.tree / ".gatehouse").mkdir(mode=0o777)
    (host.tree / ".gatehouse").chmod(0o777)
    host.calls_file.touch()
    host.calls_file.chmod(0o666)
    done = host.run("up", user=65534 if os.getuid() == 0 else None)
    assert done.returncode == 7
    assert f"secret-unusable: MODEL_API_KEY_FILE={key} cannot be read by" in refusal(done)
    assert not started(host)


def test_an_empty_key_file_that_was_given_is_never_the_demo(host: Host) -> None:
    host.docker()
    key = host.file("key", "")
    host.environment["MODEL_API_KEY_FILE"] = str(key)
    done = host.run("up")
    assert done.returncode == 7
    assert refusal(done).startswith(f"secret-unusable: MODEL_API_KEY_FILE={key} is empty")
    assert not started(host)


def test_a_folder_is_no_key(host: Host) -> None:
    host.environment["MODEL_API_KEY_FILE"] = "instances"
    done = host.run("up")
    assert done.returncode == 7
    assert f"MODEL_API_KEY_FILE={host.tree}/instances is a folder" in refusal(done)


def test_certificates_that_are_not_there_stop_the_start_and_are_no_secret(host: Host) -> None:
    host.docker()
    host.environment["MODEL_CA_FILE"] = "/nowhere/ca.pem"
    done = host.run("up")
    assert done.returncode == 4
    assert refusal(done).startswith("host-not-ready: MODEL_CA_FILE=/nowhere/ca.pem: there is no such file")
    assert not started(host)


@pytest.mark.parametrize("command", ["up", "down"])
@pytest.mark.parametrize("name", ["../..", "a/b", "Upper", "-x", "_x", "a b"])
def test_a_name_of_a_stack_that_is_none_is_a_usage_error_and_nothing_is_deleted(
    host: Host, command: str, name: str
) -> None:
    host.docker()
    host.environment["COMPOSE_PROJECT_NAME"] = name
    done = host.run(command)
    assert done.returncode == 2
    assert refusal(done).startswith(f"usage: COMPOSE_PROJECT_NAME is not a name: {name} ")
    assert (host.tree / "compose.yaml").exists()
    assert not host.calls()[1:]


def test_an_instance_that_is_not_there_is_a_config_error(host: Host) -> None:
    host.environment["GATEHOUSE_AGENT"] = "nobody"
    done = host.run("up")
    assert done.returncode == 3
    assert refusal(done).startswith(
        "config-invalid: instances/nobody/agent.yaml: there is no such file"
        " (make it: ./gatehouse new nobody; or set GATEHOUSE_AGENT)"
    )


def test_an_instance_that_is_not_there_is_told_with_the_nearest_one(host: Host) -> None:
    host.file("checkout/instances/grace/agent.yaml", "name: Grace\n")
    host.file("checkout/instances/_template/agent.yaml", "name: x\n")
    host.environment["GATEHOUSE_AGENT"] = "garce"
    done = host.run("up")
    assert done.returncode == 3
    assert refusal(done).endswith(
        "(make it: ./gatehouse new garce; or set GATEHOUSE_AGENT, the nearest is grace)"
    )


def test_a_base_image_that_cannot_be_pulled_is_an_image_error(host: Host) -> None:
    host.docker('"image inspect elsewhere"*|"pull "*) echo "no route to host" >&2; exit 1 ;;')
    host.environment["BASE"] = "elsewhere:1"
    done = host.run("up")
    assert done.returncode == 5
    assert refusal(done).startswith(
        "image-missing: the base image elsewhere:1 is not here and cannot be pulled: no route to host"
    )


def test_an_image_that_does_not_build_is_named_with_the_builders_own_error(host: Host) -> None:
    host.docker('*" build") echo "#7 ERROR: process /bin/sh did not complete"; exit 1 ;;')
    done = host.run("up")
    assert done.returncode == 5
    assert refusal(done).startswith(
        "image-missing: an image did not build: ERROR: process /bin/sh did not complete"
    )
    assert not started(host)


def test_a_stack_of_another_checkout_is_not_taken_over(host: Host) -> None:
    host.docker('"ps "*working_dir*) echo /somewhere/else ;;')
    done = host.run("up")
    assert done.returncode == 4
    assert "a stack named gatehouse already runs from /somewhere/else" in refusal(done)
    assert not started(host)


@pytest.mark.parametrize("command", ["up", "down", "test", "just"])
def test_a_held_lock_ends_the_second_command(host: Host, command: str) -> None:
    host.docker()
    with host.file("checkout/.gatehouse/lock", "").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = host.run(command)
    assert done.returncode == 4
    assert "another ./gatehouse still holds" in refusal(done)
    assert not host.called("docker compose")


def test_without_a_client_there_is_nothing_to_take_down(host: Host) -> None:
    done = host.run("down")
    assert done.returncode == 0
    assert "nothing to take down" in done.stderr


def test_settings_in_a_dotenv_file_are_data(host: Host) -> None:
    host.file("checkout/.env", f'AGENT_PORT="$(touch {host.folder}/executed)"\n')
    done = host.run("up")
    assert done.returncode == 2
    assert not (host.folder / "executed").exists()


def test_the_environment_beats_the_dotenv_file(host: Host) -> None:
    host.file("checkout/.env", "AGENT_PORT=1111\nexport GATEHOUSE_AGENT='grace'\n# BASE=no\n")
    host.environment["AGENT_PORT"] = "2222"
    assert host.shell('echo "$PORT $AGENT ${BASE-none}"') == "2222 grace none\n"
