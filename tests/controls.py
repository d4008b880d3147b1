"""The security promises of Gatehouse, as data.

Each is linked to the tests that prove it by `@pytest.mark.control("ID")`; `tests/test_controls.py` fails if a
promise has no test, a mark names no promise, or `docs/reference/controls.md` is not made from this table
(`python -m tests.controls`). A promise that is not proven yet says so in `pending`, with what is missing.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path

from tests import behaviours

TESTS = Path(__file__).resolve().parent
PAGE = TESTS.parent / "docs" / "reference" / "controls.md"


@dataclass(frozen=True, slots=True)
class Control:
    """One promise.

    `abuse` names the attacks it answers; `enforced_in` the file that makes it true; `pending` what no test
    shows yet (empty: all of it is shown).
    """

    id: str
    invariant: str
    threat: str
    enforced_in: str
    abuse: tuple[str, ...] = ()
    pending: str = ""


CONTROLS = (
    # --- the turn container ------------------------------------------------------------------------------
    Control(
        "NET-01",
        "A turn has no network: only loopback exists in its container.",
        "Data or requests leave for a host of the visitor's choice.",
        "runtime/spawner/policy.py",
        ("N01", "N02", "N05", "N11"),
    ),
    Control(
        "NET-02",
        "Neither a turn nor the front reaches the host, its bridges or another container by address or name.",
        "A turn attacks services that listen on the host or beside it.",
        "runtime/spawner/policy.py, compose/stack.yaml",
        ("N04", "N06", "D01"),
    ),
    Control(
        "DOOR-01",
        "One turn cannot use up the model door of another.",
        "A thousand silent connections starve every other visitor.",
        "runtime/modelproxy/doors.py",
        ("N13",),
    ),
    Control(
        "DOOR-02",
        "A door exists only while its own turn runs, and possession of its socket is the identity.",
        "A turn replays or borrows another turn's right to use the model.",
        "runtime/modelproxy/doors.py, runtime/spawner/doors.py",
        ("S05", "N10", "N12"),
    ),
    Control(
        "FS-01",
        "Grounding, persona and tools are read-only for a turn.",
        "A turn changes what later turns say.",
        "runtime/spawner/policy.py",
        ("F01",),
    ),
    Control(
        "FS-02",
        "A turn can write to its own tmpfs mounts only, all of them noexec.",
        "A turn leaves something behind or brings a program of its own.",
        "runtime/spawner/policy.py",
        ("F06", "F07"),
    ),
    Control(
        "CLI-01",
        "The CLI's own syntax in visitor text does nothing.",
        "Commands, attachments and reminders in a message are executed before any model sees them.",
        "runtime/spawner/frame.py, runtime/spawner/cli_call.py",
        ("F14",),
    ),
    Control(
        "CLI-02",
        "No turn has Bash; a granted script runs from an argument list, without a shell.",
        "The CLI's auto-allow of read-only commands reads any file of the container.",
        "runtime/spawner/cli_call.py, sandbox/grants.py",
        ("F15",),
    ),
    Control(
        "CLI-03",
        "Settings, hooks and MCP servers that lie in the grounding are inert, and file tools stay inside it.",
        "A document in the grounding reconfigures the CLI.",
        "runtime/spawner/cli_call.py",
        ("F11",),
    ),
    Control(
        "KEY-01",
        "No credential is anywhere in a turn container.",
        "A turn reads the model API key from environment, files, memory or command lines.",
        "runtime/modelproxy/key.py, runtime/spawner/policy.py",
        ("S01", "S03", "P01"),
    ),
    Control(
        "SOCK-01",
        "A turn sees no socket but its own doors.",
        "A turn talks to the engine, containerd or another service.",
        "runtime/spawner/policy.py",
        ("D07",),
    ),
    Control(
        "PRIV-01",
        "A turn has no capability, cannot gain one, and runs under our seccomp filter.",
        "A turn uses root powers or rare kernel interfaces to get out.",
        "runtime/spawner/policy.py, sandbox/seccomp.json",
        ("K08", "F09"),
    ),
    Control(
        "SYS-01",
        "The seccomp filter denies by default and allows no socket family or call that a turn does not need.",
        "A kernel interface that a turn never needs has a bug.",
        "sandbox/seccomp.json",
        ("K01", "K02", "K03", "K04", "K05", "F10"),
        pending="a probe for every denial, and the evaluation of the installed filter",
    ),
    Control(
        "RES-01",
        "Processes, memory, swap, files and every writable place of a turn are bounded.",
        "One turn takes the machine from everybody else.",
        "runtime/spawner/policy.py",
        ("R01", "R02"),
    ),
    Control(
        "BODY-01",
        "What runs is what policy.py says: every key of the create body is found in the running container.",
        "The engine or a later change silently drops a control.",
        "runtime/spawner/policy.py",
        ("D02",),
    ),
    Control(
        "BARE-01",
        "No service image can run a turn without the sandbox; a front that does serves the loopback alone.",
        "A switch or a fault serves visitors from a bare process of the host.",
        "runtime/server.py, runtime/front/loopback.py, compose/Dockerfile",
    ),
    Control(
        "LIFE-01",
        "When a turn ends or is cancelled, or the front goes away, its container and door are gone.",
        "Abandoned containers gather, with visitors' text in them.",
        "runtime/spawner/engine.py, runtime/spawner/turns.py",
        ("L01",),
    ),
    Control(
        "LIFE-02",
        "A turn ends at its own deadline even if nobody outside is left to end it.",
        "The spawner dies and its containers run on.",
        "sandbox/turn_init.py",
        ("L02", "L03"),
    ),
    Control(
        "LIFE-03",
        "A spawner that starts removes every turn container of its own and none of anybody else's.",
        "Leftovers of a crash live on, or another stack's turns are killed.",
        "runtime/spawner/reaper.py",
        ("L01",),
    ),
    Control(
        "OUT-01",
        "Output of a turn is read without pause and capped in total and per line.",
        "A flood fills memory or disk, or blocks the end of the turn.",
        "runtime/spawner/engine.py",
        ("R05",),
    ),
    # --- the spawner -------------------------------------------------------------------------------------
    Control(
        "SPAWN-01",
        "The spawner's caller sends data only; any other field is refused before any engine call.",
        "A compromised front asks for another image, a mount or privileges.",
        "runtime/spawner/server.py",
        ("D02", "D03"),
    ),
    Control(
        "SPAWN-02",
        "What the front holds open at the spawner is bounded, and it cannot replace the spawner's socket.",
        "A compromised front fills the spawner's memory or takes its place.",
        "runtime/serving.py, compose/stack.yaml",
    ),
    Control(
        "OPS-01",
        "A reload is asked on the operator's socket alone; no visitor and no front can ask for one.",
        "A compromised front makes the spawner read files and build packs without end.",
        "runtime/ops.py",
    ),
    Control(
        "PACK-01",
        "Only regular files of the configured directories enter a pack; links and specials are refused.",
        "A link in the grounding shows a file of the host to visitors.",
        "runtime/agents/documents.py, runtime/spawner/collect.py, runtime/agents/inline.py",
        ("F03", "F04", "F05"),
    ),
    Control(
        "PACK-02",
        "A turn runs on the definition its message came to or not at all; a failed reload changes nothing.",
        "A reload mixes two definitions, or takes files from under a turn.",
        "runtime/spawner/catalogue.py, runtime/spawner/server.py, runtime/front/executor.py",
    ),
    Control(
        "CFG-01",
        "allowed_tools is a closed grammar; anything it does not know is a config error.",
        "A shell, a write tool or a network tool is granted by a typing mistake.",
        "runtime/agents/tool_grants.py",
    ),
    Control(
        "CFG-02",
        "A secret in what visitors can read keeps an instance from starting, and no message repeats it.",
        "A key is published with the first question.",
        "runtime/agents/disclosures.py, runtime/agents/quoting.py",
    ),
    Control(
        "CFG-03",
        "Any bytes in an instance's files end as an agent or as problems, in bounded time and memory.",
        "An aliased or deeply nested file holds the start for ever.",
        "runtime/agents/yaml_source.py, runtime/agents/regular.py",
    ),
    Control(
        "CFG-04",
        "A card claims no tool that is not granted, and what its words promise without one is pointed out.",
        "Visitors rely on a booking that nothing makes.",
        "runtime/agents/honesty.py, runtime/agents/promises.py",
    ),
    Control(
        "STACK-01",
        "Every service has exactly the network, mounts, user, capabilities and limits that one table lists.",
        "A later change gives a service what it must never hold.",
        "compose/stack.yaml",
        ("D01", "A08"),
    ),
    Control(
        "LOAD-04",
        "The spawner runs no more turns at once than its own ceiling, whatever the front says.",
        "A compromised front starts containers without end.",
        "runtime/spawner/ceilings.py",
        ("R08",),
    ),
    Control(
        "LOAD-05",
        "The spawner starts no more turns a minute than its own ceiling.",
        "A loop of short turns keeps the engine busy for ever.",
        "runtime/spawner/ceilings.py",
    ),
    Control(
        "LOAD-06",
        "The turns that run together may not use more memory than the spawner was given for them.",
        "Many turns together take the host's memory.",
        "runtime/spawner/ceilings.py",
    ),
    # --- the model proxy ---------------------------------------------------------------------------------
    Control(
        "KEY-02",
        "Only the model proxy can read the model API key, and it is in no image, log or inspect output.",
        "Another service or an operator's paste leaks the key.",
        "compose/stack.yaml, runtime/modelproxy/key.py",
        ("S02",),
    ),
    Control(
        "KEY-03",
        "An unreadable or malformed key stops the model proxy; it never falls back to the demo model.",
        "A persona answers from a toy while its owner believes it is live.",
        "runtime/modelproxy/key.py",
    ),
    Control(
        "MODEL-01",
        "Only POST /v1/messages and POST /v1/messages/count_tokens reach the upstream.",
        "A turn uses files, batches, models or organisation calls of the owner's account.",
        "runtime/modelproxy/app.py",
        ("M02", "N07"),
    ),
    Control(
        "MODEL-02",
        "Headers of a turn are rebuilt from an allowlist; the key is injected outside.",
        "A turn sends a key, a cookie or a beta of its own.",
        "runtime/modelproxy/app.py",
        ("M01",),
    ),
    Control(
        "MODEL-03",
        "A request body with server tools, MCP servers, url or file sources or another model is refused.",
        "The model API itself is used to reach the network.",
        "runtime/modelproxy/grammar.py",
        ("M03", "M04"),
    ),
    Control(
        "MODEL-04",
        "Money is reserved before a request is forwarded, and every turn and day has a finite cap.",
        "A turn is a free language model for its visitor.",
        "runtime/modelproxy/ledger.py",
        ("M05",),
    ),
    Control(
        "MODEL-05",
        "An upstream failure's body never reaches a turn, and a turn hears only 200, 402 and 403.",
        "An error text carries a key or an internal host to a visitor, or the CLI retries for minutes.",
        "runtime/modelproxy/app.py",
        ("M07", "S04"),
    ),
    # --- the front ---------------------------------------------------------------------------------------
    Control(
        "IN-01",
        "A message without text starts no turn.",
        "Empty messages burn containers and money.",
        "runtime/front/admit.py",
    ),
    Control(
        "IN-02",
        "A message longer than the agent's limit starts no turn.",
        "One message fills the model's context and the owner's bill.",
        "runtime/front/admit.py",
    ),
    Control(
        "LOAD-01",
        "No more turns run at once than the agent's max_concurrency; the rest are told so at once.",
        "A crowd takes the machine, or waits for ever.",
        "runtime/front/admit.py, runtime/front/executor.py",
        ("R08",),
    ),
    Control(
        "LOAD-02",
        "Turns of one context run one after the other, and few may wait.",
        "One visitor's turns interleave, or pile up without end.",
        "runtime/front/admit.py, runtime/front/memory.py",
    ),
    Control(
        "LOAD-03",
        "A front that stops admits no new turn and answers the running ones.",
        "A restart leaves visitors without an answer.",
        "runtime/front/admit.py, runtime/front/turns.py, runtime/server.py",
    ),
    Control(
        "LOAD-07",
        "A turn that nobody watches any more is ended after the configured grace.",
        "Visitors who hang up hold every place.",
        "runtime/front/presence.py, runtime/front/audience.py",
    ),
    Control(
        "LOAD-08",
        "What visitors can make the front hold is bounded, each bound a setting: bodies, heads, connections, "
        "streams, readers, tasks and conversations.",
        "Slow, stalled or many connections take the front's memory and keep everybody else out.",
        "runtime/front/settings.py, runtime/serving.py, runtime/front/wire.py",
    ),
    Control(
        "ANS-01",
        "Every turn ends in exactly one non-empty answer within its timeout.",
        "A visitor watches 'working' for ever or reads a blank.",
        "runtime/front/executor.py, runtime/turn/stream.py",
    ),
    Control(
        "WIRE-01",
        "No exception text, path, stack or input value reaches a client.",
        "An error tells a stranger how the inside looks.",
        "runtime/front/wire.py, runtime/front/executor.py",
        ("A05",),
    ),
    Control(
        "TERM-01",
        "Nothing that an agent or a log says can steer the terminal that shows it.",
        "Escape sequences in an answer rewrite the operator's screen or clipboard.",
        "runtime/cli/output.py",
    ),
    Control(
        "TERM-02",
        "An agent's card cannot send a question to an address inside, nor out of TLS.",
        "A stranger's card makes the author's machine ask a service inside its network.",
        "runtime/cli/ask_http.py",
    ),
    Control(
        "WIRE-02",
        "Tasks are found by id only; listing is refused.",
        "A stranger lists every visitor's conversation.",
        "runtime/front/tasks.py, runtime/front/wire.py",
        ("A02",),
    ),
    Control(
        "WIRE-03",
        "Only application/json bodies of bounded size and depth are parsed.",
        "Any web page drives the agent with a simple request, or one body takes all memory.",
        "runtime/front/wire.py",
    ),
    Control(
        "WIRE-04",
        "Nothing is made of what a request calls its host; a foreign page reads nothing and runs nothing.",
        "A web page drives the agent in its visitor's name, or a cache is poisoned.",
        "runtime/front/wire.py",
    ),
    Control(
        "WIRE-05",
        "Every A2A error is one row of one table, the same in both dialects, in JSON and in a stream.",
        "An exception that nobody thought of tells the inside, or a client cannot tell errors apart.",
        "runtime/front/dialects.py",
    ),
    Control(
        "REP-01",
        "The card and the first answer of a conversation say that an automated representative speaks.",
        "A visitor takes the agent for the person and its words for binding.",
        "runtime/front/card.py, runtime/front/updates.py",
    ),
    Control(
        "MEM-01",
        "A context remembers its own visitor's words only, and only unguessable ids remember anything.",
        "One visitor reads or continues another's conversation.",
        "runtime/front/memory.py",
        ("A03",),
    ),
    Control(
        "MEM-02",
        "No visitor text can look like another line of the transcript.",
        "A visitor forges what the agent said before.",
        "runtime/turn/plan.py",
    ),
    Control(
        "MEM-03",
        "What an operator has had forgotten, or what is too old, is held nowhere in the front.",
        "A deletion leaves the text in a store or with a running turn.",
        "runtime/front/forget.py",
    ),
    Control(
        "ADDR-01",
        "A forwarded address is believed on the tunnel's socket, or when a configured proxy sends it.",
        "A visitor takes a new address for each request and escapes every limit.",
        "runtime/front/identity.py",
        ("A07",),
    ),
    Control(
        "SCREEN-01",
        "Every text that leaves is screened, streamed text no less than the final one.",
        "Keys, escape codes or hidden characters reach a visitor's terminal or page.",
        "runtime/turn/screen.py",
    ),
)


def marks() -> dict[str, list[str]]:
    """Return control id -> tests that carry its mark, as `path::name`, read without running them."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(path.read_text())
        whole = [
            id_
            for node in tree.body
            if isinstance(node, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)
            for id_ in _ids(node.value)
        ]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                for id_ in {*whole, *(i for decorator in node.decorator_list for i in _ids(decorator))}:
                    found.setdefault(id_, []).append(f"{path.relative_to(TESTS.parent)}::{node.name}")
    return found


def _ids(node: ast.expr) -> list[str]:
    """Return the ids in every `control(...)` call below a node."""
    return [
        str(argument.value)
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "control"
        for argument in call.args
        if isinstance(argument, ast.Constant)
    ]


def page() -> str:
    """Return docs/reference/controls.md."""
    linked = marks()
    lines = [
        "# Controls",
        "",
        "What Gatehouse promises, where it is enforced and which tests prove it.",
        "Made from `tests/controls.py` by `python -m tests.controls`;",
        "a test fails when this page, the table and the tests disagree.",
        "[What a client may rely on](#what-a-client-may-rely-on) stands after it, with its tests.",
        "The ids of attacks are in [attacks.md](attacks.md).",
        "",
    ]
    for control in CONTROLS:
        lines += [
            f"## {control.id}",
            "",
            control.invariant,
            "",
            f"- Threat: {control.threat}",
            f"- Enforced in: {', '.join(f'`{name.strip()}`' for name in control.enforced_in.split(','))}",
        ]
        if control.abuse:
            lines.append(f"- Attacks: {', '.join(control.abuse)}")
        if control.pending:
            lines.append(f"- Pending: {control.pending}")
        lines.append("- Tests:")
        lines += [f"  - `{test}`" for test in linked.get(control.id, [])] or ["  - none yet"]
        lines.append("")
    return "\n".join([*lines, *behaviours.section()])


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE.name}: {len(CONTROLS)} controls\n")
