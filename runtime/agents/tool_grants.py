"""Reads `allowed_tools`: a closed grammar, so that a grant outside it never reaches a turn.

    allowed_tools = grant *( "," grant )
    grant         = "Read" / "Glob" / "Grep" / "Bash(python3 ${tools_dir}/" NAME ".py:*)"
    NAME          = [a-z][a-z0-9_]{0,40}

Why closed: Bash itself is never among a turn's tools. Its read-only auto-allow returned `/etc/passwd` and the
environment with a single scoped grant present (architecture §4), so a Bash grant only names a script, which
`sandbox/grants.py` runs without a shell.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.agents.definition import Tools
from runtime.agents.forms import SCRIPT_NAME
from runtime.agents.placeholders import unknown_variables
from runtime.agents.quoting import shown

if TYPE_CHECKING:
    from pathlib import Path

BUILTIN = ("Read", "Glob", "Grep")
MAX_GRANTS = 32
MEND = "use Read, Glob, Grep or Bash(python3 ${tools_dir}/NAME.py:*), separated by commas"


@dataclass(frozen=True, slots=True)
class Granted:
    """What is granted, and what of it nobody knows while `allowed_tools` itself is wrong.

    `doubtful` is then its text: a name in there may be granted once it is mended. None when there is no text.
    """

    tools: Tools
    doubtful: str | None = ""

    def lacks(self, name: str, *, builtin: bool = False) -> bool:
        """Say whether a script, or with `builtin` a tool, is certainly not granted."""
        if name in (self.tools.builtin if builtin else self.tools.granted):
            return False
        if builtin and name not in BUILTIN:
            return True
        return self.doubtful is not None and name not in self.doubtful


_SCRIPT = re.compile(rf"Bash\(python3 \$\{{tools_dir\}}/({SCRIPT_NAME})\.py:\*\)")
_OTHER_SCRIPT = re.compile(r"Bash\(python3 \$\{tools_dir\}/([\w-]{1,100})\.py:\*\)")


def parse_grants(text: str) -> tuple[Tools, tuple[str, ...]]:
    """Return the tools that `text` grants, and a message for every part that the grammar does not know.

    Order does not matter and a grant given twice is a problem. `Tools.granted` keeps the order of the text.
    """
    builtin: list[str] = []
    granted: list[str] = []
    wrong: list[str] = []
    for part in (piece.strip(" \t\r\n") for piece in text.split(",")):
        match = _SCRIPT.fullmatch(part)
        if part in builtin or (match and match[1] in granted):
            wrong.append(f"{shown(part)!r} is granted twice")
        elif part in BUILTIN:
            builtin.append(part)
        elif match:
            granted.append(match[1])
        elif not part:
            wrong.append("has an empty grant")
        else:
            unknown = [found.text for found in unknown_variables(part)]
            about = f": {unknown[0]} is filled in by nothing" if unknown else _about_name(part)
            wrong.append(f"{shown(part)!r} cannot be granted{about}")
    if len(granted) > MAX_GRANTS:
        wrong.append(f"grants more than {MAX_GRANTS} scripts")
    return Tools(tuple(name for name in BUILTIN if name in builtin), tuple(granted)), tuple(wrong)


def _about_name(part: str) -> str:
    """Say what is wrong with the name of a script that is granted in the right form."""
    match = _OTHER_SCRIPT.fullmatch(part)
    wrong = dict.fromkeys(re.findall(r"[^a-z0-9_]", match[1])) if match else ()
    if wrong:
        signs = " ".join(f"`{sign}`" for sign in wrong)
        return f": the name of a script has a-z, 0-9 and _, and no {signs}; rename the file too"
    return ": the name of a script begins with a letter and has at most 41 characters" if match else ""


def render_grants(tools: Tools) -> str:
    """Return the text that `parse_grants` reads back as the same tools."""
    return ",".join(
        (*tools.builtin, *(f"Bash(python3 ${{tools_dir}}/{name}.py:*)" for name in tools.granted))
    )


def missing_scripts(tools: Tools, tools_dir: Path) -> tuple[str, ...]:
    """Return a message for every granted script that is not a regular file in `tools_dir` itself."""
    messages: list[str] = []
    for name in tools.granted:
        try:
            mode = (tools_dir / f"{name}.py").lstat().st_mode
        except OSError:
            messages.append(f"tools/{name}.py does not exist")
            continue
        if not stat.S_ISREG(mode):
            messages.append(f"tools/{name}.py is not a regular file")
    return tuple(messages)
