"""F: what a turn can change, and where it can write at all."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from runtime import layout
from tests.harness.stack import Stack, docker

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.harness.turnbox import Boxes

pytestmark = pytest.mark.engine

PACK_DIGEST = """
import hashlib, os, sys
digest = hashlib.sha256()
for folder, names, files in os.walk(sys.argv[1]):
    names.sort()
    for name in sorted(files):
        path = os.path.join(folder, name)
        digest.update(path.encode() + open(path, "rb").read() + oct(os.stat(path).st_mode).encode())
print(digest.hexdigest())
"""


def pack_digest(stack: Stack, pack: str) -> str:
    digest = stack.python("spawner", PACK_DIGEST, str(layout.PACKS / pack)).strip()
    assert digest != hashlib.sha256().hexdigest(), "the pack is empty"
    return digest


@pytest.mark.control("FS-01")
def test_f01_nothing_under_the_grounding_can_be_changed(stack: Stack, boxes: Boxes) -> None:
    before = pack_digest(stack, boxes.pack)
    outcome = boxes.box().probe("F01")
    assert outcome["outcome"] == "denied", outcome["changed"]
    assert outcome["files"] >= 12
    assert pack_digest(stack, boxes.pack) == before


@pytest.mark.control("FS-01")
def test_f01_persona_and_tools_cannot_be_changed_either(boxes: Boxes) -> None:
    outcome = boxes.box("/instance").probe("F01")
    assert outcome["outcome"] == "denied", outcome["changed"]
    assert outcome["files"] >= 2


@pytest.mark.control("FS-01")
def test_f01_twin_on_a_writable_folder_changes_it(boxes: Boxes) -> None:
    outcome = boxes.box("/tmp").probe("F01")
    assert outcome["outcome"] == "changed", outcome


@pytest.mark.control("FS-01")
def test_f01_the_mount_alone_holds_even_for_the_owner_of_the_files(stack: Stack, boxes: Boxes) -> None:
    before = pack_digest(stack, boxes.pack)
    outcome = boxes.box(change=owner_of_the_files(stack, boxes.pack, read_only=True)).probe("F01")
    assert outcome["outcome"] == "denied", outcome["changed"]
    assert set(outcome["attempts"].values()) <= {"EROFS", "EPERM", "EXDEV", "ENOTSUP", "EACCES", "ENOSYS"}
    assert pack_digest(stack, boxes.pack) == before


@pytest.mark.control("FS-01")
def test_f01_twin_with_a_writable_mount_of_the_files_it_owns_changes_them(stack: Stack, boxes: Boxes) -> None:
    """The twin works on a copy of the pack, so that no other test sees the change."""
    name = f"twin{boxes.pack[4:]}"
    packs = "/var/lib/gatehouse/packs"
    stack.python("spawner", f"import shutil; shutil.copytree('{packs}/{boxes.pack}', '{packs}/{name}')")
    try:
        outcome = boxes.box(change=owner_of_the_files(stack, name, read_only=False)).probe("F01")
    finally:
        stack.python("spawner", f"import shutil; shutil.rmtree('{packs}/{name}')")
    assert outcome["outcome"] == "changed", outcome


def owner_of_the_files(stack: Stack, pack: str, *, read_only: bool) -> Callable[[dict[str, Any]], None]:
    """Return the change that makes a turn the owner of its grounding's files, on a mount as told."""
    program = f"import os; print(os.stat('/var/lib/gatehouse/packs/{pack}/grounding').st_uid)"
    uid = int(stack.python("spawner", program))

    def change(body: dict[str, Any]) -> None:
        body["User"] = f"{uid}:{uid}"
        (mount,) = [m for m in body["HostConfig"]["Mounts"] if m["Target"] == "/grounding"]
        mount["ReadOnly"] = read_only
        mount["VolumeOptions"]["Subpath"] = f"{pack}/grounding"

    return change


@pytest.mark.control("FS-02")
def test_f06_the_writable_paths_are_a_pinned_list(boxes: Boxes) -> None:
    outcome = boxes.box().probe("F06")
    # /dev/mqueue belongs to the container's own IPC namespace and dies with it.
    own = {"/tmp", "/home/agent", "/dev/shm", "/run/turn", "/dev/mqueue"}
    assert set(outcome["writable"]) == own, outcome
    for path in outcome["writable"]:
        for flag in ("noexec", "nosuid", "nodev"):
            assert flag in outcome["mounts"][path], (path, outcome["mounts"])
    devices = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"}
    assert set(outcome["files"]) <= devices | {"/dev/pts/ptmx"}, outcome["files"]
    assert outcome["kernel"] == [], outcome["kernel"]


@pytest.mark.control("FS-02")
def test_f06_twin_with_a_writable_root_writes_elsewhere(boxes: Boxes) -> None:
    def change(body: dict[str, Any]) -> None:
        body["HostConfig"]["ReadonlyRootfs"] = False
        body["User"] = "0:0"

    outcome = boxes.box(change=change).probe("F06")
    assert "/etc" in outcome["writable"], outcome


@pytest.mark.control("FS-02")
def test_f07_a_program_that_a_turn_brings_does_not_start(boxes: Boxes) -> None:
    program = (
        "import os\n"
        "for folder in ('/tmp', '/home/agent', '/dev/shm', '/run/turn'):\n"
        "    path = folder + '/own'\n"
        "    with open(path, 'wb') as file:\n"
        "        file.write(open('/usr/bin/python3', 'rb').read(4096))\n"
        "    os.chmod(path, 0o755)\n"
        "    try:\n"
        "        os.posix_spawn(path, [path, '-c', 'pass'], {})\n"
        "        print(folder, 'started')\n"
        "    except OSError as error:\n"
        "        print(folder, error.errno)\n"
    )
    out, err = boxes.box().run(program)
    assert out.split("\n")[:-1] == ["/tmp 13", "/home/agent 13", "/dev/shm 13", "/run/turn 13"], (out, err)


@pytest.mark.control("FS-02")
def test_f07_twin_on_an_exec_tmpfs_starts_it(boxes: Boxes) -> None:
    def change(body: dict[str, Any]) -> None:
        body["HostConfig"]["Tmpfs"]["/tmp"] = "rw,exec,size=64m,mode=1777"

    program = (
        "import os, shutil\n"
        "path = shutil.copy('/usr/bin/python3', '/tmp/own')\n"
        "os.chmod(path, 0o755)\n"
        "os.waitpid(os.posix_spawn(path, [path, '-c', 'pass'], {}), 0)\n"
        "print('started')\n"
    )
    out, err = boxes.box(change=change).run(program)
    assert out == "started\n", (out, err)


@pytest.mark.control("PRIV-01")
def test_f09_the_image_holds_no_setuid_or_setgid_file() -> None:
    found = docker(
        "run", "--rm", "--network", "none", "--user", "0:0", "--entrypoint", "/usr/bin/python3",
        "gatehouse-turn:dev", "-I", "-c",
        "import os\n"
        "for folder, _, names in os.walk('/', onerror=None):\n"
        "    if not folder.startswith(('/proc', '/sys')):\n"
        "        for name in names:\n"
        "            path = os.path.join(folder, name)\n"
        "            if os.path.isfile(path) and not os.path.islink(path):\n"
        "                if os.lstat(path).st_mode & 0o6000 or 'security.capability' in os.listxattr(path):\n"
        "                    print(path)\n"
        "print('searched')",
    )  # fmt: skip
    assert found == "searched\n"
