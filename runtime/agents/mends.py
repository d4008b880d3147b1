"""Says how to mend a value that has not the shape of its setting, and text that is no YAML.

Most mistakes are of a few kinds: a unit behind a number, quotes round it, a thousands separator, a TAB. Each
gets the words that mend it, with what the owner wrote or the setting's own default in them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runtime.agents.fields import Field, Kind
from runtime.agents.quoting import shown
from runtime.agents.tree import Node, Scalar

if TYPE_CHECKING:
    import yaml

NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?")
INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})")
NO_BREAK_SPACE = "\u00a0"
NO_BREAK_MEND = "a no-break space (U+00A0) stands in this line: write an ordinary blank in its place"
_INNER_QUOTE = re.compile(r"""[:\[,-]\s*(?:"[^"\n]*"(?=\s*[^\s,\]}#:])|'[^'\n]*'(?=\s*[^\s,\]}#:']))""")
EXAMPLES = {
    Kind.TEXT: "write one text",
    Kind.VERSION: 'write it in quotes, such as "1.0.0"',
    Kind.URL: "write it whole, such as https://example.org/about",
    Kind.HTTPS: "write it whole and in ASCII, such as https://www.example.org/security",
    Kind.CONTACT: "write mailto: and an address, or https:// and a page, in ASCII",
    Kind.ORIGIN_LIST: "write scheme and host only, such as https://www.example.org",
    Kind.PATH: "write one directory, such as ${instance_dir}/grounding",
    Kind.PATH_LIST: "write directories in brackets, such as [~/public, shared/facts]",
    Kind.PATTERN_LIST: "write a pattern below grounding_dir, such as facts/*.md",
    Kind.TEXT_LIST: "write texts in brackets, such as [first, second]",
    Kind.TOOLS: "write them on one line, separated by commas: Read,Glob,Grep",
    Kind.FILE_NAME: "write the name of one file, such as system-prompt.md",
    Kind.MAPPING: "write its keys indented below it",
    Kind.MAPPING_LIST: "write each item indented below it, starting with `- id:`",
}
_SEPARATED = re.compile(r"[0-9]{1,3}(?:[.,'_\u2019\u00a0\u202f ][0-9]{3})+")
NUMBERS = frozenset({Kind.INTEGER, Kind.NUMBER})


def example(item: Field, node: Node) -> str:
    """Say how the value at `node`, which has not the shape of its setting, is to be written."""
    if not isinstance(node, Scalar):
        return number_mend("", item) if item.kind in NUMBERS else EXAMPLES[item.kind]
    if item.kind not in NUMBERS:
        return f'put it in quotes: "{shown(node.text)}"'
    text = node.text.strip()
    shape = INTEGER if item.kind is Kind.INTEGER else NUMBER
    if node.kind == "str" and shape.fullmatch(text):
        return f"take the quotes off: {item.key}: {text}"
    return number_mend(text, item)


def number_mend(text: str, item: Field) -> str:
    """Say how a number is to be written that is not `text`, with the setting's default as the example."""
    such = f"{item.default:g}" if isinstance(item.default, int | float) else "90"
    if _SEPARATED.match(text):
        without = "a separator"
    elif item.kind is Kind.INTEGER and re.fullmatch(r"[0-9]+[.,][0-9]+", text):
        without = "a fraction"
    else:
        without = "a unit"
    return f"write {article(item.kind)} without {without}, such as {such}"


def null_mend(node: Scalar, item: Field) -> str:
    """Say what to write instead of nothing; YAML reads a lone `~`, which looks like a home, as nothing."""
    if item.kind in {Kind.PATH, Kind.PATH_LIST}:
        return "YAML reads ~ as nothing; write `~/folder`, or a path" if node.text == "~" else "write a path"
    return "give it one, or remove the line"


def syntax_mend(error: yaml.MarkedYAMLError, text: str) -> str:
    """Say how to mend what the parser stumbled over; most often it is a text with a sign that YAML reads."""
    words = f"{error.context or ''} {error.problem or ''}"
    lines = text.splitlines()
    marks = [mark for mark in (error.problem_mark, error.context_mark) if mark and mark.line < len(lines)]
    near = lines[marks[0].line] if marks else ""
    if any(NO_BREAK_SPACE in lines[mark.line] for mark in marks):
        return NO_BREAK_MEND
    if "'\\t'" in words or "\t" in near[: len(near) - len(near.lstrip())]:
        return "indent with spaces: YAML takes no TAB"
    if _INNER_QUOTE.search(near):
        return "a quote ends the text too early: write the whole text in the other kind of quotes"
    if any(part in words for part in ("flow", "mapping values are not allowed", "cannot start any token")):
        return "put the text in quotes, or mend the syntax at or just before this place"
    return "mend the syntax at or just before this place"


def article(kind: Kind) -> str:
    """Return the words for the shape of a value, as they follow `must be`."""
    return kind.value if kind in {Kind.TEXT, Kind.VERSION, Kind.TOOLS} else f"a {kind.value}"
