"""The tests run under the Python that the environment does not have, in an image made once for a lock."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.unit.host.conftest import REPO

if TYPE_CHECKING:
    from tests.unit.host.conftest import Host

LABEL = 'image inspect --format {{index .Config.Labels "gatehouse.lock"}} gatehouse-test-python'
# An engine that remembers the label of the image that it built.
BUILDER = (
    f"'{LABEL}:'*) cat \"$HOST/built\" 2>/dev/null || exit 1 ;;",
    "'image inspect --format {{.Id}} debian:'*) echo sha256:base ;;",
    "'image inspect --format {{.Id}} gatehouse-'*) [ ! -e \"$HOST/built\" ] || echo sha256:made ;;",
    '"build "*) printf "%s\\n" "$*" | sed "s/.*gatehouse.lock=\\([^ ]*\\).*/\\1/" >"$HOST/built" ;;',
    '"run "*) ;;',
)


@pytest.fixture
def other(host: Host) -> Host:
    """A checkout with the script, an engine that can build, and an environment of Python 3.11."""
    for name in ("tests/other_python.sh", "tests/harness/Dockerfile.python"):
        (host.tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPO / name, host.tree / name)
    host.docker(*BUILDER)
    host.program("python", "echo 3.11")
    return host


def run(host: Host, *arguments: str) -> subprocess.CompletedProcess[str]:
    host.program("id", "echo 0")
    return subprocess.run(
        [str(host.folder / "bin" / "sh"), str(host.tree / "tests" / "other_python.sh"), *arguments],
        env=host.variables(),
        cwd=host.tree,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def runs(host: Host) -> list[str]:
    return host.called("docker run ")


@pytest.mark.parametrize(
    ("own", "others"), [("3.11", ["3.13"]), ("3.13", ["3.11"]), ("3.12", ["3.11", "3.13"])]
)
def test_what_the_environment_does_not_have_is_run(other: Host, own: str, others: list[str]) -> None:
    other.program("python", f"echo {own}")
    done = run(other)
    assert done.returncode == 0, done.stderr
    images = [f"gatehouse-test-python:{version}" for version in others]
    assert [image for image in images if sum(image in call for call in runs(other)) != 1] == []
    assert len(runs(other)) == len(images)


def test_without_an_argument_all_tests_run_that_need_neither_engine_nor_host(other: Host) -> None:
    run(other)
    assert "--network none" in runs(other)[0]
    assert "-m not engine and not host_only" in "\n".join(other.calls())


def test_the_image_is_built_once_and_anew_for_another_lock(other: Host) -> None:
    for _ in range(2):
        assert run(other).returncode == 0
    assert len(other.called("docker build ")) == 1
    other.file("checkout/requirements/dev.txt", "another==1\n")
    assert run(other).returncode == 0
    assert len(other.called("docker build ")) == 2
    assert other.called("docker rmi ") == ["docker rmi sha256:made"]


def test_arguments_name_the_tests_instead(other: Host) -> None:
    run(other, "tests/unit/agents", "-x")
    calls = "\n".join(other.calls())
    assert " 3.13 tests/unit/agents -x" in calls
    assert "host_only" not in calls


def test_an_image_that_does_not_build_is_named_with_the_builders_own_error(other: Host) -> None:
    other.docker('"build "*) echo "#7 ERROR: no such package"; exit 1 ;;', *BUILDER)
    done = run(other)
    assert done.returncode == 5
    assert "gatehouse-test-python:3.13 did not build: ERROR: no such package" in done.stderr
    assert not runs(other)


def test_tests_that_fail_fail_the_recipe(other: Host) -> None:
    other.docker('"run "*) exit 1 ;;', *BUILDER)
    assert run(other).returncode == 1


def test_without_an_engine_it_says_what_starts_one(other: Host) -> None:
    other.docker('"version "*) echo "Cannot connect" >&2; exit 1 ;;')
    done = run(other)
    assert done.returncode == 4
    assert "no engine answers" in done.stderr
    assert "./gatehouse test starts one" in done.stderr


def test_a_base_for_python_3_11_is_made_of_debian_12(other: Host) -> None:
    other.program("python", "echo 3.13")
    other.docker('"image inspect debian:bookworm-slim") exit 1 ;;', '"pull "*) exit 1 ;;', *BUILDER)
    other.program("debootstrap", ":")
    assert run(other).returncode == 0
    (made,) = other.called("debootstrap ")
    assert made.startswith(f"debootstrap --variant=minbase bookworm {other.tree}/.gatehouse/base/root")
    assert [call.split()[-1] for call in other.called("docker import ")] == ["debian:bookworm-slim"]
