"""What is in the service images, and above all what is not."""

from __future__ import annotations

import json
import subprocess
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests.contract.stack_table import PROGRAMS
from tests.harness.stack import docker

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.engine
USERS = {
    "ingress": "10205:10101",
    "front": "10201:10101",
    "spawner": "10202:10101",
    "modelproxy": "10203:10101",
}


@pytest.fixture(scope="module", params=sorted(PROGRAMS))
def image(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def files(image: str) -> Iterator[list[tarfile.TarInfo]]:
    container = docker("create", "--network", "none", f"gatehouse-{image}:dev").strip()
    try:
        with subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE) as export:
            assert export.stdout
            with tarfile.open(fileobj=export.stdout, mode="r|") as tar:
                found = list(tar)
            export.stdout.read()
        yield found
    finally:
        docker("rm", container)


def test_an_image_holds_no_setuid_or_setgid_program(files: list[tarfile.TarInfo]) -> None:
    assert [one.name for one in files if one.isfile() and one.mode & 0o6000] == []


def test_an_image_holds_its_own_part_of_the_runtime_alone(image: str, files: list[tarfile.TarInfo]) -> None:
    below = [
        one.name.removeprefix("srv/gatehouse/runtime/")
        for one in files
        if one.name.startswith("srv/gatehouse/runtime/")
    ]
    top = {name.split("/")[0].removesuffix(".py") for name in below} - {"", "__pycache__"}
    assert top == PROGRAMS[image]


def test_an_image_holds_no_installer_and_nothing_of_the_build(files: list[tarfile.TarInfo]) -> None:
    names = [one.name for one in files]
    assert [
        name for name in names if "site-packages/pip" in name or name.endswith(("/bin/pip", "/bin/pip3"))
    ] == []
    assert [
        name for name in names if "extra_ca" in name or "install-locked" in name or "requirements.txt" in name
    ] == []
    assert [name for name in names if name.startswith("tmp/") and name != "tmp/"] == []


def test_an_image_runs_as_its_own_user_and_its_bytecode_is_there(
    image: str, files: list[tarfile.TarInfo]
) -> None:
    config = json.loads(docker("image", "inspect", f"gatehouse-{image}:dev"))[0]["Config"]
    assert config["User"] == USERS[image]
    assert not config.get("Volumes")
    names = {one.name for one in files}
    assert [
        name
        for name in names
        if name.startswith(f"srv/gatehouse/runtime/{image}/__pycache__/__init__.cpython-")
    ]


def test_the_authority_of_the_build_is_in_no_layer(image: str) -> None:
    history = docker("history", "--no-trunc", "--format", "{{.CreatedBy}}", f"gatehouse-{image}:dev")
    assert "BEGIN CERTIFICATE" not in history
    assert "PIP_CERT" not in history


def test_only_the_spawner_can_import_docker() -> None:
    program = "import importlib.util as u; print(u.find_spec('docker') is not None)"
    found = {
        name: docker(
            "run",
            "--rm",
            "--network",
            "none",
            "--entrypoint",
            "python",
            f"gatehouse-{name}:dev",
            "-c",
            program,
        ).strip()
        for name in PROGRAMS
    }
    assert found == {"ingress": "False", "front": "False", "modelproxy": "False", "spawner": "True"}
