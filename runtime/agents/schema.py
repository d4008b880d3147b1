"""Writes docs/reference/agent.schema.json from the table of settings: editors complete and check by it.

    python -m runtime.agents.schema > docs/reference/agent.schema.json

JSON schema draft 7, which the editors' YAML servers know best. It says what one file can say about itself.
What needs the disk (a directory, a script, the prompt), and ids of skills, are for `gatehouse check`.
It differs from the loader in three small things: it counts blanks round a text, which the loader takes off;
it takes 8011.0 for a whole number; and it does not see a key given twice.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from runtime.agents import forms
from runtime.agents.fields import MANY_LINES, MESSAGES, SETTINGS, Field, Kind

_LISTS = frozenset({Kind.TEXT_LIST, Kind.PATH_LIST, Kind.PATTERN_LIST, Kind.ORIGIN_LIST})
_ITEM_FORMS = {Kind.PATTERN_LIST: forms.INNER_PATTERN, Kind.ORIGIN_LIST: forms.ORIGIN}
_TEXT_FORMS = {
    Kind.URL: forms.URL,
    Kind.HTTPS: forms.HTTPS,
    Kind.CONTACT: forms.CONTACT,
    Kind.TOOLS: forms.GRANTS,
}
_NO_CONTROL = rf"^(?![\s\S]*{forms.CONTROL})"


def agent_schema() -> dict[str, Any]:
    """Return the schema of agent.yaml."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "agent.yaml of a Gatehouse instance",
        "description": "Every setting: docs/reference/settings.md",
        **_mapping(SETTINGS),
    }


def schema_text() -> str:
    """Return the schema as it stands in the docs."""
    return json.dumps(agent_schema(), indent=2) + "\n"


def field_schema(item: Field) -> dict[str, Any]:
    """Return the schema of one setting's value."""
    described: dict[str, Any] = {"description": item.description}
    if item.default is not None:
        described["default"] = list(item.default) if isinstance(item.default, tuple) else item.default
    match item.kind:
        case Kind.MAPPING:
            return described | _mapping(item.fields)
        case Kind.MAPPING_LIST:
            return described | _bounded_list(item) | {"items": _mapping(item.fields)}
        case Kind.INTEGER | Kind.NUMBER:
            kind = "integer" if item.kind is Kind.INTEGER else "number"
            return described | {"type": kind} | _bounds(item, "minimum", "maximum")
        case Kind.VERSION:
            return described | {"type": ["string", "number"]} | _text(item)
        case kind if kind in _LISTS:
            form = item.pattern or _ITEM_FORMS.get(kind, "")
            one = {
                "type": "string",
                "minLength": 1,
                "maxLength": forms.ITEM_LENGTH,
                **_forms(form, lines=False),
            }
            return described | _bounded_list(item) | {"items": one}
        case _:
            return described | {"type": "string"} | _text(item)


def _mapping(fields: tuple[Field, ...]) -> dict[str, Any]:
    required = [item.key for item in fields if item.required and not item.environment]
    return {
        "type": "object",
        "additionalProperties": False,
        **({"required": required} if required else {}),
        "properties": {item.key: field_schema(item) for item in fields},
    }


def _bounded_list(item: Field) -> dict[str, Any]:
    return {"type": "array"} | _bounds(item, "minItems", "maxItems")


def _bounds(item: Field, low: str, high: str) -> dict[str, Any]:
    bounds = {low: item.minimum, high: item.maximum}
    return {key: value for key, value in bounds.items() if value is not None}


def _text(item: Field) -> dict[str, Any]:
    form = item.pattern
    form = _TEXT_FORMS.get(item.kind, form)
    if item in MESSAGES:
        form = forms.message(item.placeholders)
    lines = item.key in MANY_LINES or item in MESSAGES
    return _bounds(item, "minLength", "maxLength") | _forms(form, lines=lines)


def _forms(form: str, *, lines: bool) -> dict[str, Any]:
    """Return one pattern that holds a whole text to its form, and to one line unless `lines`."""
    one_line = "" if lines else r"(?![\s\S]*\n)"
    return {"pattern": f"{_NO_CONTROL}{one_line}" + (f"(?:{form})$" if form else "")}


if __name__ == "__main__":
    sys.stdout.write(schema_text())
