"""Every setting of an instance in one table: key, shape, default, unit, bounds, meaning.

Validation (`values.py`), the reference page (`reference.py` writes docs/reference/settings.md) and the check
for unknown keys all read this table, so that they cannot say different things. Defaults that the rest of the
program works with are taken from `definition.py`, which owns them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum

from runtime import layout
from runtime.agents import forms
from runtime.agents.definition import Limits, Messages, Network


class Kind(StrEnum):
    """The shape of a value. The words are those of the reference page."""

    TEXT = "text"
    VERSION = "text or number"
    URL = "http(s) address"
    HTTPS = "https address"
    CONTACT = "mailto: or https: address"
    ORIGIN_LIST = "list of origins"
    INTEGER = "whole number"
    NUMBER = "number"
    PATH = "directory"
    PATH_LIST = "list of directories"
    PATTERN_LIST = "list of file patterns"
    TEXT_LIST = "list of texts"
    TOOLS = "tool grants"
    FILE_NAME = "file name"
    MAPPING = "mapping"
    MAPPING_LIST = "list of mappings"


@dataclass(frozen=True, slots=True)
class Field:
    """One setting. `minimum` and `maximum` bound a number, a text's length in characters, or a list's length.

    `default` is None where there is none: an optional setting is then left out, a `required` one is an error.
    `environment` names the variable that overrides it, `placeholders` what a message may contain in braces.
    """

    key: str
    kind: Kind
    description: str
    default: str | float | tuple[str, ...] | None = None
    required: bool = False
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    pattern: str = ""
    shape: str = ""  # `pattern` in words
    environment: str = ""
    placeholders: tuple[str, ...] = ()
    default_text: str = ""  # how the page names a default that is computed
    fields: tuple[Field, ...] = ()


_LIMITS = Limits()
_NETWORK = Network()

PROVIDER = (
    Field("organization", Kind.TEXT, "Who stands behind the agent.", required=True, minimum=1, maximum=200),
    Field("url", Kind.URL, "Where to read about them.", required=True, maximum=500),
)

SKILL = (
    Field(
        "id",
        Kind.TEXT,
        "Short name, unique on the card.",
        required=True,
        minimum=1,
        maximum=64,
        pattern=r"[a-z0-9][a-z0-9_-]*",
        shape="lower-case letters, digits, - and _",
    ),
    Field("name", Kind.TEXT, "Name for people.", default_text="the id", minimum=1, maximum=100),
    Field("description", Kind.TEXT, "What a visitor may ask for.", default="", maximum=2000),
    Field("tags", Kind.TEXT_LIST, "Words that clients search by.", required=True, minimum=1, maximum=20),
    Field("examples", Kind.TEXT_LIST, "Questions this skill answers.", default=(), maximum=20),
    Field(
        "tools",
        Kind.TEXT_LIST,
        "Scripts of the tools folder without which this skill is an empty promise: each has to be granted and"
        " named in the prompt. Not shown on the card.",
        default=(),
        maximum=32,
        pattern=forms.SCRIPT_NAME,
        shape="the name of a script without `.py`",
    ),
    Field("input_modes", Kind.TEXT_LIST, "What it takes.", default=("text",), minimum=1, maximum=8),
    Field("output_modes", Kind.TEXT_LIST, "What it gives.", default=("text",), minimum=1, maximum=8),
)

_PLACEHOLDERS = {"too_long": ("n", "max"), "error": ("error",)}
_MESSAGE_MEANING = {
    "empty": "The message has no text.",
    "too_long": "The message is longer than `max_input_chars`; {n} is its length and {max} the limit.",
    "busy": "All `max_concurrency` places are taken.",
    "working": "The turn has started.",
    "error": "The turn failed for a reason that is none of the visitor's business; {error} is one word for"
    " the kind: `model`, `output`, `crash` or `internal`.",
    "cancelled": "The visitor cancelled the turn.",
    "no_running": "Asked to cancel, but nothing runs.",
    "timeout": "`timeout` passed without an answer.",
    "empty_model": "The model answered nothing.",
    "spawn_error": "The turn's container could not be started.",
    "stopping": "The agent is being stopped: a turn that did not end in time, and any new message.",
    "notice": "Follows the first answer of a conversation, as a text part of its own.",
}

MESSAGES = tuple(
    Field(
        item.name,
        Kind.TEXT,
        _MESSAGE_MEANING[item.name],
        default=str(item.default),
        minimum=1,
        maximum=500,
        placeholders=_PLACEHOLDERS.get(item.name, ()),
    )
    for item in dataclasses.fields(Messages)
)

SETTINGS = (
    Field(
        "name",
        Kind.TEXT,
        "Name on the card.",
        default_text="the folder's name",
        minimum=1,
        maximum=100,
    ),
    Field("description", Kind.TEXT, "What the agent is, in a sentence or two.", default="", maximum=2000),
    Field("version", Kind.VERSION, "Version on the card.", default="1.0.0", minimum=1, maximum=64),
    Field("provider", Kind.MAPPING, "Who stands behind the agent.", fields=PROVIDER),
    Field("documentation_url", Kind.URL, "A page about the agent.", maximum=500),
    Field("icon_url", Kind.URL, "A picture for clients to show.", maximum=500),
    Field(
        "skills",
        Kind.MAPPING_LIST,
        "What the card promises; list only what prompt and tools really serve.",
        maximum=32,
        fields=SKILL,
    ),
    Field(
        "host",
        Kind.TEXT,
        "Address the server binds when it runs outside the stack; in the stack it binds sockets.",
        default=_NETWORK.host,
        minimum=1,
        maximum=253,
        pattern=r"[A-Za-z0-9:][A-Za-z0-9.:-]*",
        shape="an IP address or a host name",
        environment="AGENT_HOST",
    ),
    Field(
        "port",
        Kind.INTEGER,
        "Port the agent answers on.",
        default=_NETWORK.port,
        minimum=1,
        maximum=65535,
        environment="AGENT_PORT",
    ),
    Field(
        "public_url",
        Kind.URL,
        "Address on the card, as visitors reach it.",
        default_text="`http://{host}:{port}`",
        maximum=500,
        environment="PUBLIC_AGENT_URL",
    ),
    Field(
        "security_contact",
        Kind.CONTACT,
        "Where to report a weakness of the agent, for `/.well-known/security.txt`; visitors can read it.",
        maximum=500,
    ),
    Field(
        "security_policy",
        Kind.HTTPS,
        "A page that says how reports are handled, for the same file.",
        maximum=500,
    ),
    Field(
        "model",
        Kind.TEXT,
        "Alias or id of the model.",
        default="sonnet",
        minimum=1,
        maximum=100,
        pattern=r"[A-Za-z0-9][A-Za-z0-9._:@/\[\]-]*",
        shape="letters, digits and ._:@/[]-, not starting with -",
        environment="CLAUDE_MODEL",
    ),
    Field(
        "binary",
        Kind.TEXT,
        "The CLI for runs without a sandbox; a turn in a container always runs the CLI of its own image.",
        default="claude",
        minimum=1,
        maximum=500,
        pattern=r"[^-\s].*",
        shape="a program's name or path",
        environment="CLAUDE_BINARY",
    ),
    Field(
        "timeout",
        Kind.NUMBER,
        "Longest time from question to answer.",
        default=_LIMITS.timeout_seconds,
        unit="seconds",
        minimum=1,
        maximum=layout.TURN_MAX_SECONDS,
    ),
    Field(
        "grounding_dir",
        Kind.PATH,
        "The directory of public documents: all the agent may know. `~` is your home; a relative path starts"
        " at the repository's root. There is no default, since a wrong one would publish the wrong files.",
        required=True,
        minimum=1,
        maximum=4096,
        environment="GROUNDING_DIR",
    ),
    Field("extra_read_dirs", Kind.PATH_LIST, "Further public directories.", default=(), maximum=16),
    Field(
        "allowed_tools",
        Kind.TOOLS,
        "What a turn may do, comma-separated: `Read`, `Glob`, `Grep` and"
        " `Bash(python3 ${tools_dir}/NAME.py:*)` for a script in the tools folder. Nothing else exists.",
        default="Read,Glob,Grep",
        minimum=1,
        maximum=4096,
    ),
    Field(
        "max_concurrency",
        Kind.INTEGER,
        "Turns at the same time; the next visitor gets `messages.busy`.",
        default=_LIMITS.max_concurrency,
        unit="turns",
        minimum=1,
        maximum=64,
    ),
    Field(
        "max_input_chars",
        Kind.INTEGER,
        "Longest message; a longer one gets `messages.too_long`.",
        default=_LIMITS.max_input_chars,
        unit="characters",
        minimum=1,
        maximum=32000,
    ),
    Field(
        "max_turns",
        Kind.INTEGER,
        "Exchanges of a conversation that are remembered.",
        default=_LIMITS.max_turns,
        unit="exchanges",
        minimum=1,
        maximum=200,
    ),
    Field(
        "max_contexts",
        Kind.INTEGER,
        "Conversations that are remembered; the one idle longest is forgotten first.",
        default=_LIMITS.max_contexts,
        unit="conversations",
        minimum=1,
        maximum=100000,
    ),
    Field(
        "on_disconnect",
        Kind.TEXT,
        "What becomes of a turn that nobody watches any more: `cancel` ends it after `disconnect_grace`,"
        " `finish` lets it run. A message sent without waiting for its answer is always finished.",
        default=_LIMITS.on_disconnect,
        pattern="cancel|finish",
        shape="`cancel` or `finish`",
    ),
    Field(
        "disconnect_grace",
        Kind.NUMBER,
        "How long such a turn waits for somebody to come back, with `on_disconnect: cancel`.",
        default=_LIMITS.disconnect_grace_seconds,
        unit="seconds",
        minimum=0,
        maximum=600,
    ),
    Field(
        "inline_grounding",
        Kind.PATTERN_LIST,
        "Patterns below `grounding_dir` whose files are told to the model up front.",
        default=(),
        maximum=32,
    ),
    Field(
        "cors_origins",
        Kind.ORIGIN_LIST,
        "Web origins whose pages may read answers. The variable replaces the list, separated by commas.",
        default=(),
        maximum=64,
        environment="CORS_ALLOWED_ORIGINS",
    ),
    Field(
        "cors_dev_origins",
        Kind.ORIGIN_LIST,
        "Added to `cors_origins` when the variable `ENVIRONMENT` is local, dev, development or test.",
        default=(),
        maximum=64,
    ),
    Field("messages", Kind.MAPPING, "Texts of ours that visitors may read.", fields=MESSAGES),
    Field(
        "system_prompt_file",
        Kind.FILE_NAME,
        "The persona's file in the instance's folder.",
        default="system-prompt.md",
        minimum=1,
        maximum=100,
        pattern=r"[A-Za-z0-9_][A-Za-z0-9._-]*",
        shape="a plain file name in the instance's folder",
    ),
)

MANY_LINES = frozenset({"description", "allowed_tools"})  # and messages; every other text is one line
DEVELOPMENT = frozenset({"local", "dev", "development", "test"})
ENVIRONMENT = "ENVIRONMENT"
OVERRIDES = {item.environment: item for item in SETTINGS if item.environment}
