from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path

import pytest
import structlog.testing

from runtime.errors import SecretError
from runtime.modelproxy.key import Key, read_key

pytestmark = pytest.mark.control("KEY-03")

VALUE = "sk-ant-test-0000"


def test_an_empty_file_and_dev_null_mean_the_demo(tmp_path: Path) -> None:
    (tmp_path / "key").touch()
    assert read_key(tmp_path / "key") is None
    assert read_key(Path("/dev/null")) is None


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_key_is_read_with_or_without_its_line_end(tmp_path: Path, end: str) -> None:
    (tmp_path / "key").write_bytes((VALUE + end).encode())
    key = read_key(tmp_path / "key")
    assert key is not None
    assert key.header("x-api-key") == (b"x-api-key", VALUE.encode())
    assert key.header("bearer") == (b"authorization", b"Bearer " + VALUE.encode())


@pytest.mark.parametrize(
    "content",
    [
        b"\n",
        b"  ",
        b"two words",
        b" sk-ant-test-0000",
        b"sk-ant-test-0000 ",
        b"sk-ant\n\nsk-ant-test",
        b"sk-ant\x00test",
        b"sk-ant-test-\xc3\xa9",
        b"sk-ant-test\x7f",
        b"short",
        b"x" * 4097,
        b"KEY=\tx-y-z-0",
    ],
)
def test_a_malformed_key_is_exit_7_and_never_the_demo_nor_printed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    with pytest.raises(SecretError) as caught:
        read_key(path)
    assert caught.value.exit_code == 7
    assert str(path) in caught.value.sentence
    assert caught.value.hint
    assert len(content.strip()) < 3 or content.strip().decode("latin-1") not in str(caught.value)


def test_a_missing_file_a_folder_a_fifo_and_a_device_are_exit_7(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "none", tmp_path, tmp_path / "fifo", tmp_path / "loop", Path("/dev/zero")):
        with pytest.raises(SecretError):
            read_key(path)


@pytest.mark.parametrize(("mode", "told"), [(0o400, False), (0o600, False), (0o640, True), (0o604, True)])
def test_a_key_that_others_may_read_is_used_with_a_warning(tmp_path: Path, mode: int, told: bool) -> None:
    path = tmp_path / "key"
    path.write_text(VALUE)
    path.chmod(mode)
    with structlog.testing.capture_logs() as lines:
        assert read_key(path) is not None
    assert [line["event"] for line in lines] == ["key_file_exposed"] * told
    assert VALUE not in str(lines)


def test_a_key_shows_itself_in_no_form() -> None:
    key = Key(VALUE.encode())
    assert VALUE not in f"{key} {key!r} {[key]} {dir(key)}"
    for make in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            make(key)


def test_a_key_is_found_in_what_would_leave() -> None:
    key = Key(VALUE.encode())
    assert key.occurs_in(b"..." + VALUE.encode() + b"...")
    assert not key.occurs_in(VALUE.encode()[:-1])
