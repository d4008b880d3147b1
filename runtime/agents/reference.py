"""Writes docs/reference/settings.md from the table of settings, so that page and validation cannot differ.

python -m runtime.agents.reference > docs/reference/settings.md
"""

from __future__ import annotations

import sys

from runtime.agents.fields import (
    DEVELOPMENT,
    ENVIRONMENT,
    MESSAGES,
    OVERRIDES,
    PROVIDER,
    SETTINGS,
    SKILL,
    Field,
)

_INTRODUCTION = """# Settings of an instance

Written by `python -m runtime.agents.reference` from `runtime/agents/fields.py`; a test compares them.

An instance is a folder `instances/NAME/` with `agent.yaml` (this page), the prompt file and `tools/`. NAME
has lower-case letters, digits, `-` and `_`. Check one with `./gatehouse check NAME`: all mistakes are
reported at once, as `file:line:col: key: what is wrong (how to mend it)`, and the exit code is 3. Editors
check while you type: the template's first line names [agent.schema.json](agent.schema.json), made from the
same table.

The file is plain YAML of at most 256 KiB and 10,000 values, nested at most 16 deep: no anchors, aliases, tags
or directives, no key twice, no unknown key. What still stands in the template's `<angle brackets>` is a
mistake too. Texts are one line, but for `description`, `allowed_tools` and the messages.

A *turn* is one message of a visitor, answered in one container: `max_concurrency` and `timeout` are about
turns. An *exchange* is a message and its answer as the conversation remembers them: `max_turns` counts those.
"""

_CARD = """
## The card keeps its word

Mistakes are what the files show, in whatever language they are written: a skill that needs (`tools`) or is
called like a script that `allowed_tools` does not grant; a skill's script of which the prompt has not even
the word; a script that the prompt names by a path that no turn has (`tools/NAME.py` for one that exists), as
`${tools_dir}/NAME.py` where there is none, or as that or `mcp__grants__NAME` where it is not granted.

Warnings are what words tell: another tool that the prompt names and that is not granted (`WebFetch`, `Bash`,
`mcp__x__y`); a granted script that the prompt never names (a plain word such as `menu` counts in quotes, with
a colon, or as "the menu tool"); a skill of which neither prompt nor documents have a word; English words on
the card by which the agent promises booking, ordering, sending, taking requests, browsing or remembering
where no granted script does it (`examples` promise nothing); a directory that two settings give; an address
at `example.org` and the other names that are reserved for examples.

What a clause denies ("You cannot book", "Never use WebFetch") is neither; a comma ends its reach, and a
condition ("If the files do not say it, use WebSearch") denies nothing. Denials are understood in English,
German, French, Spanish, Portuguese, Italian, Dutch, Polish, Russian, Arabic and Chinese.
"""

_PLACEHOLDERS = """
## Placeholders

In the prompt, `${tools_dir}` and `${instance_dir}` become the tools folder and the instance's folder as a
turn sees them; any other `${name}` there is a mistake. `${tools_dir}` also stands in `allowed_tools`. A
directory setting may begin with `${instance_dir}/`, the instance's folder on disk. Grounding files are never
changed.
"""


def settings_page() -> str:
    """Return the whole page as Markdown."""
    development = ", ".join(f"`{word}`" for word in sorted(DEVELOPMENT))
    variables = [
        "\n## Environment variables\n",
        "A variable beats the file, and a command-line flag beats the variable.",
        "One that is set to nothing counts as not set.",
        "",
        "| variable | sets |",
        "|---|---|",
        *(f"| `{name}` | `{item.key}` |" for name, item in OVERRIDES.items()),
        f"| `{ENVIRONMENT}` | `production` unless given; {development} add `cors_dev_origins` |",
        "",
    ]
    return (
        _INTRODUCTION
        + "\n## agent.yaml\n\n"
        + _table(SETTINGS)
        + "\n## provider\n\n"
        + _table(PROVIDER)
        + "\n## skills, each\n\n"
        + _table(SKILL)
        + "\n## messages\n\n"
        + _table(MESSAGES)
        + "\n".join(variables)
        + _PLACEHOLDERS
        + _CARD
    )


def _table(fields: tuple[Field, ...]) -> str:
    rows = ["| key | shape | default | bounds | meaning |", "|---|---|---|---|---|"]
    rows += [
        f"| `{item.key}` | {item.kind.value} | {_default(item)} | {_bounds(item)} | {_meaning(item)} |"
        for item in fields
    ]
    return "\n".join(rows) + "\n"


def _default(item: Field) -> str:
    if item.required:
        return "required"
    if item.default_text:
        return item.default_text
    if item.default is None:
        return "see below" if item.fields and item.key == "messages" else "none"
    if isinstance(item.default, tuple):
        return ", ".join(f"`{text}`" for text in item.default) or "empty"
    if isinstance(item.default, str):
        return f"`{item.default}`" if item.default else "empty"
    return f"{item.default:g}"


def _bounds(item: Field) -> str:
    if item.maximum is None:
        return ""
    unit = item.unit
    if not unit:
        listed = isinstance(item.default, tuple) or "list" in item.kind.value
        unit = (
            "items" if listed else "characters" if item.kind.value not in {"whole number", "number"} else ""
        )
    low = f"{item.minimum:g} to" if item.minimum is not None else "up to"
    return f"{low} {item.maximum:.0f} {unit}".rstrip()


def _meaning(item: Field) -> str:
    shape = f" Allowed: {item.shape}." if item.shape else ""
    variable = f" Variable: `{item.environment}`." if item.environment else ""
    return f"{item.description}{shape}{variable}"


if __name__ == "__main__":
    sys.stdout.write(settings_page())
