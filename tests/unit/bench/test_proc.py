"""What is read of a process from /proc."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from tests.bench.proc import cpu_seconds, resident_bytes

if TYPE_CHECKING:
    from pathlib import Path

STATUS = "Name:\tpython\nVmPeak:\t  900000 kB\nVmHWM:\t  70000 kB\nVmRSS:\t   65432 kB\nRssAnon:\t 1 kB\n"
TICKS = os.sysconf("SC_CLK_TCK")


def process(folder: Path, name: str, content: str) -> Path:
    (folder / "7").mkdir(exist_ok=True)
    (folder / "7" / name).write_text(content)
    return folder


def test_resident_memory_is_the_kernels_figure_of_now_in_bytes(tmp_path: Path) -> None:
    assert resident_bytes(7, process(tmp_path, "status", STATUS)) == 65432 * 1024


def test_a_process_that_has_ended_has_no_memory_to_speak_of(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ended"):
        resident_bytes(7, process(tmp_path, "status", "Name:\tpython\nState:\tZ (zombie)\n"))


@pytest.mark.parametrize("name", ["python", "a b", "x) S 1 1 (y"])
def test_cpu_time_is_the_processs_own_and_the_kernels_whatever_its_name(tmp_path: Path, name: str) -> None:
    fields = ["S", *(["1"] * 10), str(3 * TICKS), str(2 * TICKS), "900", "900"]
    folder = process(tmp_path, "stat", f"7 ({name}) {' '.join(fields)}\n")
    assert cpu_seconds(7, folder) == 5


def test_this_process_has_memory_and_has_taken_the_time_that_python_says() -> None:
    times = time.process_time()
    assert resident_bytes(os.getpid()) > 1e6
    assert abs(cpu_seconds(os.getpid()) - times) < 1
