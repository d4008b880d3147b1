"""Which directories may become readable to visitors."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.agents.directories import check_directory, refuse_directory, resolve_directory

ROOT = Path("/srv/repository")
INSTANCE = ROOT / "instances" / "good"
HOME = {"HOME": "/home/owner"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("docs", "/srv/repository/docs"),
        ("./docs/", "/srv/repository/docs"),
        ("docs/../public", "/srv/repository/public"),
        ("/data/public", "/data/public"),
        ("//data//public/", "/data/public"),
        ("/data/../data/public", "/data/public"),
        ("~/public", "/home/owner/public"),
        ("${instance_dir}/grounding", "/srv/repository/instances/good/grounding"),
    ],
)
def test_a_setting_names_one_absolute_directory(text: str, expected: str) -> None:
    assert resolve_directory(text, ROOT, INSTANCE, HOME) == Path(expected)


@pytest.mark.parametrize("text", ["..", "../x", "docs/../../x", "~other/x", "a\x00b", "a\nb"])
def test_a_setting_that_names_none_is_explained(text: str) -> None:
    assert isinstance(resolve_directory(text, ROOT, INSTANCE, HOME), str)


def test_a_tilde_without_a_home_is_explained() -> None:
    assert resolve_directory("~/public", ROOT, INSTANCE, {}) == "starts at ~, but HOME is not set"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/srv",
        "/srv/repository",
        "/srv/repository/instances",
        "/srv/repository/instances/good",
        "/etc",
        "/etc/ssl",
        "/proc/1",
        "/run/secrets",
        "/home",
        "/home/owner",
    ],
)
def test_a_directory_that_holds_more_than_documents_is_refused(path: str) -> None:
    assert refuse_directory(Path(path), ROOT, INSTANCE, HOME)


@pytest.mark.parametrize(
    "path", ["/data", "/srv/repository/docs", "/home/owner/public", "/srv/other", str(INSTANCE / "grounding")]
)
def test_a_directory_of_documents_is_taken(path: str) -> None:
    assert refuse_directory(Path(path), ROOT, INSTANCE, HOME) == ""


@given(st.lists(st.sampled_from(["..", ".", "a", "b", ""]), max_size=8).map("/".join))
def test_no_relative_path_ends_outside_the_repository(text: str) -> None:
    path = resolve_directory(text.lstrip("/"), ROOT, INSTANCE, HOME)
    assert isinstance(path, str) or path == ROOT or ROOT in path.parents


def test_a_link_counts_as_what_it_leads_to(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    instance = root / "instances" / "good"
    instance.mkdir(parents=True)
    (root / "system").symlink_to("/etc")
    (root / "parent").symlink_to(tmp_path)
    (root / "loop").symlink_to("loop")
    assert check_directory(root / "system", root, instance, {}) == "belongs to the system"
    assert check_directory(root / "parent", root, instance, {}) == "holds the whole repository"
    assert check_directory(root / "loop", root, instance, {}) == "does not exist"
    assert check_directory(root / "absent", root, instance, {}) == "does not exist"
