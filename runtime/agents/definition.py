"""What an agent is, wherever it was defined: one immutable value that everything after loading works on.

An instance folder (`runtime/agents/instance.py`) is one source of it; Markdown agents and a remote catalogue
will be others. `turn/plan.py` and `spawner/policy.py` never ask which (architecture §7, "What an agent is").
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Provider:
    """Who stands behind the agent, as shown on the card."""

    organization: str
    url: str


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill on the card. A card lists only what prompt and tools serve (seed S1 §4, honest card)."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    examples: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ("text",)
    output_modes: tuple[str, ...] = ("text",)


@dataclass(frozen=True, slots=True)
class Card:
    """The self-description that visitors read at /.well-known/agent-card.json."""

    name: str
    description: str
    version: str
    public_url: str
    provider: Provider | None = None
    documentation_url: str = ""
    icon_url: str = ""
    skills: tuple[Skill, ...] = ()


@dataclass(frozen=True, slots=True)
class Grounding:
    """What the agent may know: directories of public documents, and the part of them told to it up front.

    `directory` is the turn's working directory, `extra` become /extra/0, /extra/1 and so on, `inline` are
    glob patterns below `directory` whose files are appended to the persona.
    """

    directory: Path
    extra: tuple[Path, ...] = ()
    inline: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tools:
    """What the agent may do, as the closed grammar of architecture §4 allows it.

    `builtin` is a subset of Read, Glob, Grep in that order; `granted` are names of scripts in the tools
    folder without `.py` (`opening_hours`), each served as `mcp__grants__NAME`.
    """

    builtin: tuple[str, ...] = ("Read", "Glob", "Grep")
    granted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """The caps of a public endpoint (seed S1 §4).

    `on_disconnect` says what becomes of a turn that nobody watches any more: `cancel` ends it after
    `disconnect_grace_seconds`, `finish` lets it run.
    """

    timeout_seconds: float = 90.0
    max_concurrency: int = 2
    max_input_chars: int = 4000
    max_turns: int = 24
    max_contexts: int = 500
    on_disconnect: str = "cancel"
    disconnect_grace_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Messages:
    """Everything a visitor may read that no model wrote. `too_long` knows {n} and {max}."""

    empty: str = "I did not get any text. What would you like to know?"
    too_long: str = "Your message has {n} characters; I can take up to {max}. Please shorten it."
    busy: str = "I am answering many requests right now. Please ask again in a few seconds."
    working: str = "Working on it …"
    error: str = "Something went wrong on my side. Please try again in a moment."
    cancelled: str = "Cancelled."
    no_running: str = "There is nothing running to cancel."
    timeout: str = "I could not answer in time. Please try again, perhaps with a narrower question."
    empty_model: str = "I have no answer to that. Please try asking in another way."
    spawn_error: str = "I am briefly overloaded. Please try again in a moment."
    stopping: str = "I am being restarted. Please ask again in a moment."
    notice: str = "This is an automated representative. Nothing it says binds anybody."


@dataclass(frozen=True, slots=True)
class Network:
    """Where one front serves one agent, and which browsers' origins may read its answers."""

    host: str = "127.0.0.1"
    port: int = 8011
    cors_origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Security:
    """Where to report a weakness of the agent (`/.well-known/security.txt`); without a contact nowhere.

    `contact` is a `mailto:` or `https:` address, `policy` an `https:` one.
    """

    contact: str = ""
    policy: str = ""


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """One agent, complete and immutable.

    `persona` is the prompt text as written, placeholders included: `render_persona` fills them in for the
    place where the turn will run. `tools_dir` holds the granted scripts. `digest` covers every field but the
    three directories, so that two processes that mount the same files under different paths agree, and
    nothing of the documents themselves. `binary` is the CLI for a turn without a sandbox; a sandboxed turn
    never looks at it.
    """

    id: str
    card: Card
    persona: str
    grounding: Grounding
    tools: Tools
    tools_dir: Path
    model: str
    limits: Limits = field(default_factory=Limits)
    messages: Messages = field(default_factory=Messages)
    network: Network = field(default_factory=Network)
    security: Security = field(default_factory=Security)
    guardrails: tuple[str, ...] = ()
    binary: str = "claude"

    @property
    def digest(self) -> str:
        """SHA-256 (64 hex digits) over the canonical JSON of the definition without host paths."""
        value: dict[str, Any] = dataclasses.asdict(self)
        value.pop("tools_dir")
        value["grounding"]["directory"] = ""
        value["grounding"]["extra"] = len(self.grounding.extra)
        canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def render_persona(self, *, tools_dir: str, instance_dir: str) -> str:
        """Return the persona with `${tools_dir}` and `${instance_dir}` filled in; nothing else changes."""
        return self.persona.replace("${tools_dir}", tools_dir).replace("${instance_dir}", instance_dir)
