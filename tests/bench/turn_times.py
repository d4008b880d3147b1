"""A sandboxed turn against the bare CLI: seconds to the first text, and to the end.

The sandboxed turn is timed as a visitor sees it: from sending `message/stream` over A2A to the first text of
the answer. The bare turn is the CLI as a subprocess with nothing around it, from starting the process to its
first text. Both ask the same scripted model the same question, one after the other, N of each.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runtime.agents.instance import load_instance
from tests.bench.numbers import Row, percentiles
from tests.harness.stack import REPO, docker

if TYPE_CHECKING:
    from tests.harness.stack import Stack

TEXT = "She described how the engine could weave algebraical patterns just as the loom weaves flowers. " * 4


def extract_cli(folder: Path) -> str:
    """Copy the CLI out of the turn image, so that both sides run the same bytes."""
    container = docker("create", "gatehouse-turn:dev").strip()
    try:
        docker("cp", f"{container}:/usr/local/bin/claude", str(folder / "claude"))
    finally:
        docker("rm", container)
    return str(folder / "claude")


def bare_turn(cli: str, home: str, url: str, prompt: str) -> tuple[float, float]:
    """Run one bare turn; return seconds to the first text and to the end."""
    ada = load_instance(REPO, "ada", {})
    command = [
        *(cli, "-p", prompt, "--model", ada.model),
        *("--output-format", "stream-json", "--verbose", "--include-partial-messages"),
        *(
            "--append-system-prompt",
            ada.render_persona(tools_dir="/instance/tools", instance_dir="/instance"),
        ),
        *(
            "--allowedTools",
            "Read,Glob,Grep",
            "--permission-mode",
            "acceptEdits",
            "--setting-sources",
            "project",
        ),
    ]
    environment = {
        "HOME": home,
        "PATH": os.environ["PATH"],
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-ant-test-0000",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    begin = time.perf_counter()
    first = 0.0
    with subprocess.Popen(
        command,
        cwd=ada.grounding.directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if not first and '"text_delta"' in line:
                first = time.perf_counter() - begin
    if process.returncode or not first:
        raise click.ClickException(f"the bare CLI gave no text (exit {process.returncode})")
    return first, time.perf_counter() - begin


def sandboxed_turn(stack: Stack, prompt: str) -> tuple[float, float]:
    """Run one turn through the whole stack; return seconds to the first text and to the end."""
    begin = time.perf_counter()
    first = 0.0
    with stack.stream(prompt) as events:
        for event in events:
            if not first and event["kind"] == "artifact-update":
                first = time.perf_counter() - begin
    if not first:
        raise click.ClickException("the sandboxed turn gave no text")
    return first, time.perf_counter() - begin


def measure(stack: Stack, count: int) -> list[Row]:
    """Alternate bare and sandboxed turns and compare their times."""
    bare: list[tuple[float, float]] = []
    boxed: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        cli, home = extract_cli(Path(folder)), str(Path(folder) / "home")
        Path(home).mkdir()
        for turn in range(count):
            marker = stack.script({"text": TEXT, "chunks": 4})
            bare.append(bare_turn(cli, home, stack.model_url, f"Who was she? {marker}"))
            boxed.append(sandboxed_turn(stack, f"Who was she? {marker}"))
            click.echo(
                f"  {turn + 1}/{count}: bare {bare[-1][0]:.2f} s, sandboxed {boxed[-1][0]:.2f} s", err=True
            )
    return [
        row(name, [turn[index] for turn in bare], [turn[index] for turn in boxed])
        for index, name in ((0, "first_text_seconds"), (1, "whole_turn_seconds"))
    ]


def row(name: str, bare: list[float], boxed: list[float]) -> Row:
    """Compare the medians of both kinds of turn."""
    plain, sandboxed = percentiles(bare), percentiles(boxed)
    return Row(
        f"{name}, sandboxed ÷ bare",
        sandboxed["p50"] / plain["p50"],
        said=f"bare p50 {plain['p50']:.3f}, sandboxed p50 {sandboxed['p50']:.3f}; "
        f"p95 {plain['p95']:.3f} and {sandboxed['p95']:.3f}",
        parts={f"bare_{key}": value for key, value in plain.items()}
        | {f"sandboxed_{key}": value for key, value in sandboxed.items()},
    )
