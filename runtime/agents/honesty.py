"""Compares what the card promises with what grants and prompt serve: the honest card (seed S1 §4). Pure.

A visitor, and a program that picks an agent by its card, believes the card. What is plainly untrue, a skill
that names a script which is not granted, keeps an instance from starting. What words only suggest, booking or
sending where nothing granted does either, is a warning. A granted script that the prompt never names is a
warning too: nothing false is said and a model is offered the script with the first line of its docstring, but
whether it calls it is left to chance.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from runtime.agents.findings import AtSetting
from runtime.agents.promises import ACTIONS, is_kept, promises
from runtime.agents.prompt_tools import is_mentioned, is_named
from runtime.agents.quoting import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runtime.agents.tool_grants import Granted


def dishonest(
    found: Mapping[str, Any], granted: Granted, scripts: Mapping[str, str], prompt: str | None
) -> Iterator[AtSetting]:
    """Yield what the card claims and nothing serves, each with the setting that claims it.

    `found` are the checked settings, as far as they are right; `scripts` maps each file of the tools folder,
    without `.py`, to the beginning of its text. `prompt` is None when there is none to compare with.
    """
    skills = found.get("skills", ())
    for number, skill in enumerate(skills):
        yield from _needs(f"skills[{number}]", skill, granted, prompt)
        yield from _poses_as_tool(f"skills[{number}]", skill, granted, scripts)
    for name in granted.tools.granted if prompt is not None else ():
        if not is_named(name, prompt or ""):
            message = f"grants {name}, which the prompt never names"
            mend = f"say in the prompt what `{name}` is for, or take the grant out"
            yield AtSetting("allowed_tools", message, mend, certain=False)
    serving = [name for name in (*scripts, *granted.tools.granted) if not granted.lacks(name)]
    served = "\n\n".join(f"{name.replace('_', ' ')}.\n\n{scripts.get(name, '')}" for name in serving)
    kept = {action for action, _, _ in ACTIONS if is_kept(action, served)}
    for setting, text in _card_texts(found):
        for action in promises(text):
            if action not in kept:
                message = f"seems to promise {action}, which nothing granted does"
                mend = "say what the agent does, or grant a script that does it"
                yield AtSetting(setting, message, mend, certain=False)


def words_of(skill: Mapping[str, Any]) -> frozenset[str]:
    """Return the beginnings of the words by which a skill would be found in a prompt or document."""
    texts = (skill.get("id", ""), skill.get("name", ""), *skill.get("tags", ()))
    words = (word.lower() for text in texts for word in re.findall(r"[^\W\d_]{4,}", text))
    return frozenset(word[:6].rstrip("s") for word in words)


def unserved(found: Mapping[str, Any], known: set[str], prompt: str) -> Iterator[AtSetting]:
    """Yield the skills of which neither the prompt nor a document (`known` words) has a single word."""
    lowered = prompt.lower()
    for number, skill in enumerate(found.get("skills", ())):
        words = words_of(skill)
        if words and not skill.get("tools") and not words & known and not any(w in lowered for w in words):
            message = "is a skill of which neither the prompt nor any document has a word"
            mend = "write a document about it, or take the skill out"
            yield AtSetting(f"skills[{number}].id", message, mend, certain=False)


def _needs(at: str, skill: Mapping[str, Any], granted: Granted, prompt: str | None) -> Iterator[AtSetting]:
    for number, name in enumerate(skill.get("tools", ())):
        if granted.lacks(name):
            mend = f"add Bash(python3 ${{tools_dir}}/{name}.py:*) to allowed_tools, or take the skill out"
            yield AtSetting(f"{at}.tools[{number}]", f"needs {name}, which is not granted", mend)
        elif prompt is not None and not is_named(name, prompt):
            message = f"needs {name}, which the prompt never names"
            mend = f"say in the prompt when to use it, as `{name}`"
            yield AtSetting(f"{at}.tools[{number}]", message, mend, certain=not is_mentioned(name, prompt))


def _poses_as_tool(
    at: str, skill: Mapping[str, Any], granted: Granted, scripts: Mapping[str, str]
) -> Iterator[AtSetting]:
    named = [(f"{at}.id", skill.get("id", "")), (f"{at}.name", skill.get("name", ""))]
    named += [(f"{at}.tags[{number}]", tag) for number, tag in enumerate(skill.get("tags", ()))]
    for setting, text in named:
        name = re.sub(r"[ -]+", "_", text.lower())
        if name in scripts and granted.lacks(name):
            message = f"{shown(text)!r} is the script tools/{name}.py, which is not granted"
            mend = f"add Bash(python3 ${{tools_dir}}/{name}.py:*) to allowed_tools, or take the skill out"
            yield AtSetting(setting, message, mend)


def _card_texts(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts in which a card promises something; examples are what visitors say."""
    yield "name", found.get("name", "")
    yield "description", found.get("description", "")
    for number, skill in enumerate(found.get("skills", ())):
        yield f"skills[{number}].name", skill.get("name", "")
        yield f"skills[{number}].description", skill.get("description", "")
