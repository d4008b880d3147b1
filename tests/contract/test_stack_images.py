"""What is in the service images, and above all what is not."""

from __future__ import annotations

import base64
import io
import json
import re
import secrets
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import certifi
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
PEM = re.compile(rb"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]{400,8000}-----END CERTIFICATE-----")
CERTIFI = "opt/venv/lib/python3/site-packages/certifi/cacert.pem"
CLI = "usr/local/bin/claude"


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


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate's text, as PEM has it, in a file of a layer or in an image's own description."""

    place: str
    text: bytes


def certificates(saved: IO[bytes]) -> set[Certificate]:
    """Return every certificate in the content of every layer, and in every description, of `docker save`."""
    found = set()
    with tarfile.open(fileobj=saved, mode="r|") as outer:
        for blob in outer:
            content = outer.extractfile(blob)
            if content is None:
                continue
            text = content.read()
            try:
                layer = tarfile.open(fileobj=io.BytesIO(text))  # noqa: SIM115  closed below, if it is one
            except tarfile.ReadError:
                found |= {Certificate(blob.name, one) for one in PEM.findall(text.replace(b"\\n", b"\n"))}
                continue
            with layer:
                for member in layer:
                    file = layer.extractfile(member) if member.isreg() else None
                    if file is not None:
                        found |= {Certificate(member.name, one) for one in PEM.findall(file.read())}
    return {Certificate(one.place, b"".join(one.text.split())) for one in found}


def saved(*images: str) -> set[Certificate]:
    with subprocess.Popen(["docker", "save", *images], stdout=subprocess.PIPE) as process:
        assert process.stdout
        found = certificates(process.stdout)
        process.stdout.read()
    assert process.returncode == 0
    return found


@pytest.fixture(scope="module")
def in_images() -> set[Certificate]:
    """What the layers of all images hold of certificates, the turn's among them; shared layers count once."""
    return saved(*(f"gatehouse-{name}:dev" for name in [*PROGRAMS, "turn"]))


def test_certificates_are_in_the_files_that_the_locks_bring_along_and_nowhere_else(
    in_images: set[Certificate],
) -> None:
    places = {re.sub(r"python3\.\d+", "python3", one.place) for one in in_images}
    assert places == {CERTIFI, CLI}


def test_the_list_of_authorities_in_the_images_is_the_locked_one(in_images: set[Certificate]) -> None:
    locked = {b"".join(one.split()) for one in PEM.findall(Path(certifi.where()).read_bytes())}
    found = {one.text for one in in_images if one.place.endswith("certifi/cacert.pem")}
    assert found == locked


def test_twin_a_build_that_keeps_its_authority_is_found(tmp_path: Path) -> None:
    body = base64.encodebytes(secrets.token_bytes(600)).decode()
    marker = f"-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n"
    (tmp_path / "ca.crt").write_text(marker)
    (tmp_path / "Dockerfile").write_text(
        "FROM gatehouse-ingress:dev\n"
        "USER 0:0\n"
        f'LABEL given="{marker.replace(chr(10), "")}"\n'
        "RUN --mount=type=secret,id=extra_ca cp /run/secrets/extra_ca /opt/kept && rm -f /opt/kept\n"
        "RUN --mount=type=secret,id=extra_ca cp /run/secrets/extra_ca /opt/kept\n"
        "RUN rm /opt/kept\n"
    )
    image = f"gatehouse-marked:{secrets.token_hex(4)}"
    secret = f"id=extra_ca,src={tmp_path / 'ca.crt'}"
    docker("build", "--no-cache", "--secret", secret, "--tag", image, str(tmp_path))
    try:
        found = {one.place for one in saved(image) if one.text == b"".join(marker.encode().split())}
    finally:
        docker("rmi", image)
    assert "opt/kept" in found
    assert [place for place in found if place.startswith("blobs/") or place.endswith(".json")]


@pytest.mark.parametrize("name", [*sorted(PROGRAMS), "turn"])
def test_the_history_of_an_image_holds_no_authority(name: str) -> None:
    history = docker("history", "--no-trunc", "--format", "{{.CreatedBy}}", f"gatehouse-{name}:dev")
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
