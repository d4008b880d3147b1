"""Which model answers a turn without a sandbox, and what the CLI's environment is for it. Pure but one look.

The CLI finds its own way to a model, as it does for the person at the keyboard: a key, a token, a base URL,
a cloud provider, or a login. Where there is none, or `MODEL=demo` is set, the built-in demo model answers. It
is always said which.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runtime.errors import ConfigError, Problem
from runtime.spawner.cli_call import NO_KEY, SWITCHES

if TYPE_CHECKING:
    from collections.abc import Mapping

WAYS: Final = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_OAUTH_TOKEN",
)
PROVIDERS: Final = "CLAUDE_CODE_USE_"  # _BEDROCK, _VERTEX, _FOUNDRY
OFF: Final = frozenset({"", "0", "false", "no", "off"})
LOGIN_FILE: Final = ".credentials.json"  # where the CLI keeps a login on Linux

# What a parent may hold that must not reach the CLI: a context that is for granted scripts alone, a switch
# that makes every CLAUDE.md of the extra directories an instruction, and the marks of a CLI that started us.
NEVER: Final = frozenset(
    {
        "AGENT_CONTEXT_ID",
        "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD",
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
    }
)


@dataclass(frozen=True, slots=True)
class Model:
    """Who answers: the demo model or the CLI's own, and the words that say why."""

    demo: bool
    reason: str


def choose(environ: Mapping[str, str]) -> Model:
    """Return which model will answer. Raises ConfigError when `MODEL` is neither empty nor `demo`.

    A login is recognised by the CLI's own file alone, which is not opened.
    """
    asked = environ.get("MODEL", "").strip()
    if asked not in {"", "demo"}:
        mend = "unset it; the model's name is CLAUDE_MODEL, or --model"
        raise ConfigError((Problem("environment", 0, 0, "MODEL", "is neither empty nor `demo`", mend),))
    if asked:
        return Model(demo=True, reason="MODEL=demo is set")
    for name in WAYS:
        if environ.get(name, "").strip():
            return Model(demo=False, reason=f"{name} is set")
    for name in sorted(environ):
        if name.startswith(PROVIDERS) and environ[name].strip().lower() not in OFF:
            return Model(demo=False, reason=f"{name} is set")
    if _logged_in(environ):
        return Model(demo=False, reason="the CLI is logged in")
    return Model(demo=True, reason="the environment names no way to a model, and the CLI is not logged in")


def _logged_in(environ: Mapping[str, str]) -> bool:
    home = environ.get("HOME", "")
    folder = environ.get("CLAUDE_CONFIG_DIR", "") or (f"{home}/.claude" if home else "")
    if not folder:
        return False
    try:
        return Path(folder, LOGIN_FILE).stat().st_size > 0
    except OSError:
        return False


def environment(environ: Mapping[str, str], door_url: str = "", config: str = "") -> dict[str, str]:
    """Return the CLI's environment: the parent's, with the switches that a turn in a container has too.

    With `door_url`, the demo model's address, every other way to a model is taken out, and the CLI's own
    folder becomes `config`: nothing may answer in the demo's place, nor be told to it.
    """
    kept = {name: value for name, value in environ.items() if name not in NEVER}
    if door_url:
        kept = {
            name: value
            for name, value in kept.items()
            if not name.startswith(("ANTHROPIC_", PROVIDERS)) and name not in WAYS
        }
        kept |= {
            "ANTHROPIC_BASE_URL": door_url,
            "ANTHROPIC_API_KEY": NO_KEY,
            "CLAUDE_CONFIG_DIR": config,
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
    return {**kept, **SWITCHES}
