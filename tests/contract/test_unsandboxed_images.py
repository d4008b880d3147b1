"""No service of the stack can run a turn without the sandbox: what would do it is in no image.

The front is run here with exactly the files of its image and told to; the images themselves are compared with
the same list by tests/contract/test_image_files.py and test_stack_images.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
DOCKERFILES = ("compose/Dockerfile", "sandbox/Dockerfile.turn")


def copied(file: str) -> list[tuple[str, list[str], str]]:
    """Return every COPY out of the tree as (stage, sources, target)."""
    stage, found = "", []
    for line in (REPO / file).read_text().replace("\\\n", " ").splitlines():
        words = line.split()
        if words[:1] == ["FROM"]:
            stage = words[-1]
        if words[:1] in (["COPY"], ["ADD"]) and not any(word.startswith("--from") for word in words):
            plain = [word for word in words[1:] if not word.startswith("--")]
            found.append((stage, plain[:-1], plain[-1]))
    return found


@pytest.mark.control("BARE-01")
@pytest.mark.parametrize("file", DOCKERFILES)
def test_no_image_is_given_what_runs_turns_without_the_sandbox(file: str) -> None:
    sources = [source.rstrip("/") for _stage, sources, _target in copied(file) for source in sources]
    assert sources
    assert [one for one in sources if "unsandboxed" in one] == []
    whole = {".", "./", "*", "", "runtime", "runtime/*", "/"}
    assert [one for one in sources if one in whole or one.startswith("*")] == []
    assert "unsandboxed" not in (REPO / file).read_text()


@pytest.mark.control("BARE-01")
def test_no_other_dockerfile_makes_an_image_of_ours() -> None:
    found = {
        path.relative_to(REPO).as_posix()
        for folder in ("compose", "sandbox", "runtime")
        for path in (REPO / folder).rglob("*ockerfile*")
    }
    assert found == set(DOCKERFILES)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The front's image as a folder."""
    folder = tmp_path_factory.mktemp("front")
    for stage, sources, target in copied("compose/Dockerfile"):
        if stage != "front":
            continue
        for source in sources:
            if (REPO / source).is_dir():
                shutil.copytree(REPO / source, folder / target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (folder / target).mkdir(parents=True, exist_ok=True)
                shutil.copy(REPO / source, folder / target)
    return folder


def front(image: Path, *arguments: str, module: str = "runtime.server") -> subprocess.CompletedProcess[str]:
    # Without `site`, which would add the tree itself where it is installed for editing.
    path = os.pathsep.join((str(image), sysconfig.get_path("purelib")))
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    return subprocess.run(
        [sys.executable, "-S", "-m", module, *arguments],
        env=env,
        cwd=image,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.control("BARE-01")
def test_the_fronts_image_says_that_it_runs_turns_in_the_sandbox_only(image: Path) -> None:
    done = front(image, "--agent", "ada", "--sandbox", "none")
    assert done.returncode == 2
    assert done.stderr == (
        "gatehouse: usage: This image runs turns in the sandbox only. (run --sandbox none from a checkout)\n"
    )


def test_the_fronts_image_works_otherwise_as_far_as_its_files_go(image: Path) -> None:
    done = front(image, "--agent", "nobody", "--root", str(image))
    assert done.returncode == 3, done.stderr
    assert "config-invalid" in done.stderr


@pytest.mark.control("BARE-01")
def test_there_is_no_single_turn_without_the_sandbox_in_the_fronts_image(image: Path) -> None:
    done = front(image, "--agent", "ada", module="runtime.unsandboxed")
    assert done.returncode == 1
    assert "No module named runtime.unsandboxed" in done.stderr
