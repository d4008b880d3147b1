"""The editors' schema: it is the table's, it takes our own files, and it agrees with the loader."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.agents.fields import MESSAGES, PROVIDER, SETTINGS, SKILL, Field, Kind
from runtime.agents.placeholders import PHRASES
from runtime.agents.schema import agent_schema, field_schema, schema_text
from runtime.agents.tool_grants import parse_grants
from runtime.agents.values import read_fields
from runtime.agents.yaml_source import Report, read_mapping

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = ROOT / "docs" / "reference" / "agent.schema.json"
FIELDS = tuple(
    (f"{name}.{item.key}" if name else item.key, item)
    for name, fields in (("", SETTINGS), ("provider", PROVIDER), ("skills", SKILL), ("messages", MESSAGES))
    for item in fields
)

ODD = st.sampled_from("\t\n\x07\x1b\x85\xa0\u2028\u202e\u2066\ufeff\ufffe{}\"'\\<>@/:,.*[]")
TEXTS = st.text(max_size=12) | st.text(st.sampled_from("ab1 -_./") | ODD, max_size=12)
FORMS: dict[Kind, list[str]] = {
    Kind.URL: [
        *(
            "https://example.org",
            "http://a:80/x?y#z",
            "https://[::1]:8011/",
            "https://a:0",
            "https://a:65536",
        ),
        *(
            "https://a@b",
            "ftp://a",
            "https://",
            "https://a b",
            "javascript:x",
            "https://a:65535",
            "http://:80",
        ),
    ],
    Kind.ORIGIN_LIST: [
        "https://example.org",
        "http://localhost:3000",
        "https://a/",
        "*",
        "https://a?b",
        "null",
    ],
    Kind.PATTERN_LIST: [
        "*.md",
        "facts/**/*.md",
        "../x",
        "/x",
        "a//b",
        "a/..",
        ".",
        "a/./b",
        ".hidden",
        "a\\b",
        "x/",
    ],
    Kind.TOOLS: [
        *("Read", "Read,Glob", "Read, Read", "Read,,Glob", "Bash", "Write", "Read,", "Glob ,\nGrep"),
        "Bash(python3 ${tools_dir}/a.py:*)",
        "Read,Bash(python3 ${tools_dir}/a.py:*), Bash(python3 ${tools_dir}/b.py:*)",
        "Bash(python3 ${tools_dir}/a.py:*),Read,Bash(python3 ${tools_dir}/a.py:*)",
        "Bash(python3 ${tools_dir}/../a.py:*)",
        ",".join(f"Bash(python3 ${{tools_dir}}/a{number}.py:*)" for number in range(32)),
        ",".join(f"Bash(python3 ${{tools_dir}}/a{number}.py:*)" for number in range(33)),
    ],
}
LONG = st.integers(0, 5000).map(lambda length: "x" * length)


def values_of(item: Field) -> st.SearchStrategy[Any]:
    """Return right, nearly right and wrong values of a setting."""
    words = (
        TEXTS
        | LONG
        | st.sampled_from(["sonnet", "ada", "a-b_c", "{n} {max}", "{error}", "{n:x}", "{{n}}", ""])
    )
    if item.kind in FORMS:
        words = st.sampled_from(FORMS[item.kind]) | words
    words = words.filter(lambda text: text == text.strip())
    numbers = st.integers(-5, 10**6) | st.floats(-5, 10**5).map(lambda number: round(number, 4))
    if item.kind is Kind.INTEGER:
        numbers = numbers.filter(lambda number: isinstance(number, int) or not number.is_integer())
    junk = st.none() | st.booleans() | numbers | words | st.lists(words, max_size=2)
    match item.kind:
        case Kind.MAPPING:
            return mappings_of(item.fields) | junk
        case Kind.MAPPING_LIST:
            return st.lists(mappings_of(item.fields), max_size=3) | junk
        case kind if "list" in kind.value:
            return st.lists(words | words | junk, max_size=int(item.maximum or 9) + 2) | junk
        case _:
            return words | numbers | junk


def mappings_of(fields: tuple[Field, ...]) -> st.SearchStrategy[dict[str, Any]]:
    some = st.fixed_dictionaries({}, optional={item.key: values_of(item) for item in fields})
    return some | st.dictionaries(
        st.sampled_from(["x", *(item.key for item in fields)]), st.just("a"), max_size=4
    )


def written(value: object) -> bytes:
    """Return a value as YAML: its JSON, with what YAML would fold or refuse unless it is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    escape = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
    return escape.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()


def loader_takes(item: Field, value: object) -> bool:
    report = Report("agent.yaml")
    source = read_mapping(written({item.key: value}), report)
    assert source is not None
    values = read_fields(source, (replace(item, required=False),), report)
    grants = values.found.get(item.key) if item.kind is Kind.TOOLS else None
    return not report.problems and not (grants and parse_grants(grants)[1])


def test_the_schema_in_the_docs_is_the_one_that_the_table_makes() -> None:
    assert SCHEMA.read_text() == schema_text(), "run python -m runtime.agents.schema"


def test_the_schema_is_a_schema() -> None:
    schema = agent_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    assert schema["$schema"] == jsonschema.Draft7Validator.META_SCHEMA["$schema"]


def test_the_schema_takes_ada_and_the_template_once_it_is_filled_in() -> None:
    validator = jsonschema.Draft7Validator(agent_schema())
    ada = (ROOT / "instances/ada/agent.yaml").read_text()
    template = (ROOT / "instances/_template/agent.yaml").read_text()
    for phrase in PHRASES.values():
        template = template.replace(phrase, "Mira")
    for text in (ada, template):
        validator.validate(yaml.safe_load(text))
        assert text.startswith("# yaml-language-server: $schema=../../docs/reference/agent.schema.json\n")


def test_every_setting_is_described_to_the_editor() -> None:
    properties = agent_schema()["properties"]
    assert {key: value["description"] for key, value in properties.items()} == {
        item.key: item.description for item in SETTINGS
    }


def test_a_mistyped_key_and_a_missing_tag_are_seen_while_typing() -> None:
    validator = jsonschema.Draft7Validator(agent_schema())
    errors = validator.iter_errors({"grounding_dir": "docs", "nme": "x", "skills": [{"id": "a"}]})
    assert sorted(error.validator for error in errors) == ["additionalProperties", "required"]


@pytest.mark.parametrize(("path", "item"), FIELDS, ids=[path for path, _ in FIELDS])
@settings(max_examples=25)
@given(data=st.data())
def test_schema_and_loader_agree_about_every_value(path: str, item: Field, data: st.DataObject) -> None:
    del path
    value = data.draw(values_of(item))
    validator = jsonschema.Draft7Validator(field_schema(item))
    assert validator.is_valid(value) == loader_takes(item, value)
