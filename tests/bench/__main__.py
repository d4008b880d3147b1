"""`just bench`: speed, size and memory as ratios measured in one run, on this machine, now.

The sandboxed turn is timed as a visitor sees it: from sending `message/stream` over A2A to the first text of
the answer. The bare turn is the CLI as a subprocess with nothing around it, from starting the process to its
first text. Both ask the same scripted model the same question, one after the other, N of each.
"""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runtime.agents.instance import load_instance
from tests.harness.stack import REPO, Stack, docker
from tests.harness.turnbox import Boxes, turn_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.agents.definition import AgentDefinition

TEXT = "She described how the engine could weave algebraical patterns just as the loom weaves flowers. " * 4
LIMITS_MB = {"front": 150, "spawner": 90, "modelproxy": 110, "ingress": 30}


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


def size(body: dict[str, Any]) -> int:
    """Return the size of a request's body in bytes."""
    return len(json.dumps(body, ensure_ascii=False).encode())


def resident_mb(stack: Stack, service: str) -> float:
    """Return the resident memory of a service's processes in MB (10^6 bytes)."""
    pids = [
        row.split()[0] for row in docker("top", stack.service(service), "-o", "pid,args").splitlines()[1:]
    ]
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1])
    return total * 1024 / 1e6


def quantiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {"p50": statistics.median(ordered), "p95": ordered[max(0, round(0.95 * len(ordered)) - 1)]}


def speed(stack: Stack, cli: str, home: str, count: int) -> dict[str, Any]:
    """Alternate bare and sandboxed turns and compare their times."""
    bare: list[tuple[float, float]] = []
    boxed: list[tuple[float, float]] = []
    for turn in range(count):
        marker = stack.script({"text": TEXT, "chunks": 4})
        bare.append(bare_turn(cli, home, stack.model_url, f"Who was she? {marker}"))
        boxed.append(sandboxed_turn(stack, f"Who was she? {marker}"))
        click.echo(
            f"  {turn + 1}/{count}: bare {bare[-1][0]:.2f} s, sandboxed {boxed[-1][0]:.2f} s", err=True
        )
    result: dict[str, Any] = {}
    for index, name in ((0, "first_text_seconds"), (1, "whole_turn_seconds")):
        plain, sandboxed = quantiles([t[index] for t in bare]), quantiles([t[index] for t in boxed])
        result[name] = {"bare": plain, "sandboxed": sandboxed, "ratio_p50": sandboxed["p50"] / plain["p50"]}
    return result


NARROWING = ("--tools", "--disallowedTools", "--setting-sources")  # each with a value
SWITCHES = ("--restricted", "--strict-mcp-config", "--disable-slash-commands")


def allowed_tools_only(body: dict[str, Any]) -> None:
    """Take from a turn's CLI call all that narrows it but --allowedTools."""
    command: list[str] = body["Cmd"]
    for flag in NARROWING:
        at = command.index(flag)
        del command[at : at + 2]
    for flag in SWITCHES:
        command.remove(flag)


def one_line_persona(body: dict[str, Any]) -> None:
    """Replace the persona by one line: its size is the owner's, and hides what the call itself costs."""
    at = body["Cmd"].index("--append-system-prompt-file")
    body["Cmd"][at : at + 2] = ["--append-system-prompt", "You answer for Ada Lovelace."]


def sizes(stack: Stack) -> list[dict[str, Any]]:
    """Compare the bytes of a turn's first request with the same turn's, narrowed by --allowedTools alone."""
    boxes = Boxes(stack)
    bare = dataclasses.replace(boxes.agent, tools=dataclasses.replace(boxes.agent.tools, granted=()))

    def sent(agent: AgentDefinition, *changes: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        def change(body: dict[str, Any]) -> None:
            for one in changes:
                one(body)

        marker = stack.script({"text": TEXT})
        boxes.real_turn(agent, change).run(turn_line(f"Who was she? {marker}"))
        return dict(stack.requests(marker)[0]["body"])

    rows = []
    try:
        for persona, changes in (("of one line", [one_line_persona]), ("Ada's", [])):
            for grants, agent in ((1, boxes.agent), (0, bare)):
                narrow = sent(agent, *changes)
                row = {"model": narrow["model"], "persona": persona, "grants": grants, "bytes": size(narrow)}
                row["allowed_tools_only_bytes"] = size(sent(agent, allowed_tools_only, *changes))
                rows.append({**row, "ratio": row["bytes"] / row["allowed_tools_only_bytes"]})
    finally:
        boxes.close()
    return rows


@click.command()
@click.option("--count", default=30, show_default=True, help="Turns of each kind.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def main(*, count: int, as_json: bool) -> None:
    """Measure a sandboxed turn against the bare CLI."""
    with Stack() as stack, tempfile.TemporaryDirectory() as folder:
        memory = {service: resident_mb(stack, service) for service in LIMITS_MB}
        cli, home = extract_cli(Path(folder)), str(Path(folder) / "home")
        Path(home).mkdir()
        figures = {"memory_mb": memory, "request": sizes(stack), **speed(stack, cli, home, count)}
    if as_json:
        click.echo(json.dumps(figures, indent=1))
        return
    for name in ("first_text_seconds", "whole_turn_seconds"):
        row = figures[name]
        click.echo(
            f"{name}: bare p50 {row['bare']['p50']:.3f}, sandboxed p50 {row['sandboxed']['p50']:.3f}, "
            f"ratio {row['ratio_p50']:.2f} (p95 {row['bare']['p95']:.3f} and {row['sandboxed']['p95']:.3f})"
        )
    for row in figures["request"]:
        click.echo(
            f"request bytes ÷ only --allowedTools ({row['model']}, grants: {row['grants']}, persona "
            f"{row['persona']}): {row['bytes']} ÷ {row['allowed_tools_only_bytes']} = {row['ratio']:.3f}"
        )
    for service, megabytes in memory.items():
        click.echo(f"memory at rest, {service}: {megabytes:.0f} MB (wanted: at most {LIMITS_MB[service]})")


if __name__ == "__main__":
    sys.exit(main())
