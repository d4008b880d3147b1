"""Which answer the check refuses: said in its place, because the file that it stands in was thrown away.

What an answer becomes in the files is the template's own affair, so it is found by trying: a problem that
comes of one answer beside the examples of the other questions is that answer's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from runtime.agents.placeholders import TEMPLATE
from runtime.cli.answers import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runtime.errors import Problem


def blamed(
    problems: Sequence[Problem],
    name: str,
    answers: Mapping[str, str],
    attempt: Callable[[Mapping[str, str]], Sequence[Problem]],
) -> tuple[Problem, ...]:
    """Return the problems, each with the flag of an answer that it is about in the place of its file.

    `attempt` returns what the check says of other answers. What it says of the examples too is the template's
    and names its file there; what comes of no answer alone is theirs together.
    """
    given = {question.key: question for question in QUESTIONS if answers.get(question.key)}
    examples = {**answers, **{key: question.example for key, question in given.items()}}
    template = set(map(_key, attempt(examples)))
    alone = {key: set(map(_key, attempt({**examples, key: answers[key]}))) for key in given}
    found: list[Problem] = []
    for problem in problems:
        if _key(problem) in template:
            place = problem.file.replace(f"/{name}/", f"/{TEMPLATE}/", 1)
            found.append(replace(problem, file=place, line=0, col=0))
            continue
        flags = [question.flag for key, question in given.items() if _key(problem) in alone[key]]
        found += [
            replace(problem, file=flag, line=0, col=0, path="") for flag in flags or ("the answers together",)
        ]
    return tuple(dict.fromkeys(found))


def _key(problem: Problem) -> tuple[str, str]:
    """Return what makes two problems the same one: a setting's message may count its characters."""
    return problem.file, problem.path or problem.message
