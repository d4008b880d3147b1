"""Fills the template's texts with the answers of an author. Pure.

A value of YAML is replaced as a whole by a quoted one, at the place where the parser found it, so that no
answer can become a key, a comment or a number. In Markdown an answer that would begin a heading, a list or
another block is escaped; what it holds further on is the author's own writing.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

import yaml

from runtime.agents.placeholders import PHRASES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PHRASE: Final = re.compile("|".join(map(re.escape, PHRASES.values())))
_WORDS: Final = {phrase: word for word, phrase in PHRASES.items()}
_BLOCK: Final = re.compile(
    r"#{1,6}(?=\s|$)|[-+*](?=\s|$)|>|`{3}|~{3}|<(?=[A-Za-z!/?])"
    r"|(?:[-_*][ \t]*){3,}$|=+[ \t]*$|\[(?=[^\]]*\]:)"
)
_NUMBERED: Final = re.compile(r"([0-9]{1,9})([.)])(?=\s|$)")
_ABOUT_THE_TEMPLATE: Final = re.compile(r"(?m)\A((?:#.*\n)*?)# What `\./gatehouse new NAME` copies.*\n")
_NO_PUBLIC_URL: Final = re.compile(r"(?m)^# public_url:[ \t]*\S+")


def fill_settings(text: str, words: Mapping[str, str], values: Mapping[str, str]) -> str:
    """Return agent.yaml filled in.

    `words` has the replacement of each placeholder by its short word; `values` the whole values of settings
    by dotted path (`provider.url`), of which `public_url` may be one that the template has in a comment.
    """
    pieces = []
    end = 0
    for path, node in _scalars(yaml.compose(text, Loader=yaml.SafeLoader), ""):
        value = values[path] if path in values else _filled(str(node.value), words)
        if value == node.value:
            continue
        pieces += [text[end : node.start_mark.index], json.dumps(value, ensure_ascii=False)]
        end = node.end_mark.index
    text = _ABOUT_THE_TEMPLATE.sub(r"\1", "".join(pieces) + text[end:])
    if "public_url" in values:
        line = f"public_url: {json.dumps(values['public_url'], ensure_ascii=False)}"
        text, found = _NO_PUBLIC_URL.subn(lambda _: line, text, count=1)
        text = text if found else f"{text.rstrip()}\n{line}\n"
    return text


def fill_document(text: str, words: Mapping[str, str]) -> str:
    """Return a prompt or a document filled in."""
    return _PHRASE.sub(
        lambda match: (
            _inline(words[_WORDS[match[0]]])
            if match.start() == 0 or text[match.start() - 1] == "\n"
            else words[_WORDS[match[0]]]
        ),
        text,
    )


def _filled(text: str, words: Mapping[str, str]) -> str:
    return _PHRASE.sub(lambda match: words[_WORDS[match[0]]], text)


def _inline(text: str) -> str:
    """Return a text that begins a line and no block."""
    if _BLOCK.match(text):
        return f"\\{text}"
    return _NUMBERED.sub(r"\1\\\2", text, count=1) if _NUMBERED.match(text) else text


def _scalars(node: yaml.Node | None, path: str) -> Iterator[tuple[str, yaml.ScalarNode]]:
    """Yield every value with its dotted path, in the order of the text."""
    if isinstance(node, yaml.ScalarNode):
        yield path, node
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _scalars(item, f"{path}[{index}]")
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _scalars(value, f"{path}.{key.value}" if path else str(key.value))
