"""`gatehouse new`: a persona's folder, made from the template and a few answers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from runtime.agents.check import check_instances
from runtime.cli.answers import QUESTIONS, Question, cleaned, described, refusal
from runtime.cli.blame import blamed
from runtime.cli.check import print_checked
from runtime.cli.command import Command
from runtime.cli.folder import make_instance, problems_of, refuse_taken
from runtime.cli.names import refuse_name
from runtime.cli.output import result, talk
from runtime.cli.settings import Settings, pass_settings
from runtime.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_WITH_FLAGS: Final = """gatehouse new mira --name 'Mira Okafor' --about 'a potter in Porto' \\
      --organization 'Okafor Ceramics' --url https://example.org/ \\
      --fact 'The studio opened in 2014.' --contact 'Write to studio@example.org.'"""


def _flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command one flag for each question."""
    for question in reversed(QUESTIONS):
        words = question.words + ("" if question.required else " (optional)") + "."
        function = click.option(question.flag, question.key, metavar="TEXT", help=words)(function)
    return function


@click.command(
    "new",
    cls=Command,
    prints="The folder that was made, instances/NAME. The check's words and what to do next are on stderr.",
    exits=(0, 3, 4),
    notes={
        2: "an answer or a name cannot be taken, or one is missing and there is no terminal to ask",
        3: "the check refuses the answers, and nothing was made; or a variable of the environment",
    },
    examples=("gatehouse new mira", _WITH_FLAGS),
)
@click.argument("folder", metavar="NAME", required=False)
@_flags
@pass_settings
def command(settings: Settings, /, folder: str | None, **given: str | None) -> int:
    """Make instances/NAME from instances/_template: the card, the prompt and a first document.

    NAME is the folder's: lower-case letters, digits, - and _. What no flag gives is asked for on a terminal;
    without one all flags but the optional ones must be given. Nothing that exists is overwritten, and an
    interruption leaves nothing behind.
    """
    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    missing = [question for question in QUESTIONS if question.required and given[question.key] is None]
    refusals = [] if terminal else _missing(folder, missing)
    if folder is not None:
        try:
            _refuse_name(settings, folder)
        except UsageError as error:
            refusals.append(error)
    answers, others = _taken(given)
    _refuse([*refusals, *others])
    if folder is None and terminal:
        folder = _ask("Folder below instances/", "mira", lambda text: _refuse_name(settings, text))
    if missing:
        answers |= {question.key: _answer(question) for question in QUESTIONS if question.key not in answers}
    name = str(folder)
    try:
        make_instance(settings.root, name, _words(answers), _values(answers), settings.environ)
    except ConfigError as error:
        talk("nothing was made, since with these answers the check would say:")
        raise ConfigError(
            blamed(
                error.problems,
                name,
                answers,
                lambda others: problems_of(
                    settings.root, name, _words(others), _values(others), settings.environ
                ),
            )
        ) from error
    result(f"instances/{name}")
    checked = check_instances(settings.root, (name,), settings.environ)
    print_checked(checked, sys.stderr)
    _say_next(name)
    return 0 if all(one.ok for one in checked) else ConfigError.exit_code


def _refuse(refusals: list[UsageError]) -> None:
    """Raise all that cannot be taken as one UsageError, a line each and with the mend of the last."""
    if len(refusals) == 1:
        raise refusals[0]
    if refusals:
        raise UsageError("\n".join(map(str, refusals[:-1])) + f"\n{refusals[-1].sentence}", refusals[-1].hint)


def _missing(folder: str | None, missing: list[Question]) -> list[UsageError]:
    """Return all that is missing as one error, where nobody can be asked."""
    names = [*(() if folder else ("NAME",)), *(question.flag for question in missing)]
    mend = "give them all, or run this on a terminal and be asked"
    return [UsageError(f"missing: {', '.join(names)}", mend)] if names else []


def _refuse_name(settings: Settings, name: str) -> None:
    refuse_name(name)
    if name.startswith("_"):
        raise UsageError(f"{name!r} is no name of an instance", "_ begins the names of templates")
    refuse_taken(settings.root, name)


def _taken(given: dict[str, str | None]) -> tuple[dict[str, str], list[UsageError]]:
    """Return the answers that flags gave, and one error with a line for each that cannot be taken."""
    answers = {}
    refusals = []
    for question in QUESTIONS:
        text = given[question.key]
        if text is None:
            continue
        answers[question.key] = cleaned(question, text)
        reason = refusal(question, answers[question.key])
        if reason:
            refusals.append(f"{question.flag} {reason}")
    return answers, [UsageError("\n".join(refusals), "see gatehouse new --help")] if refusals else []


def _answer(question: Question) -> str:
    """Ask until the answer can be taken; an optional question may be left with Enter."""

    def take(text: str) -> None:
        reason = refusal(question, cleaned(question, text))
        if not cleaned(question, text) and question.required:
            raise UsageError("an answer is needed here")
        if reason and (text or question.required):
            raise UsageError(f"that {reason}")

    left = "" if question.required else question.left
    return cleaned(question, _ask(question.words, question.example, take, left=left))


def _ask(words: str, example: str, take: Callable[[str], None], *, left: str = "") -> str:
    """Ask on the terminal, on stderr, until `take` raises no UsageError.

    `left` says what Enter alone stands for, where that is an answer.
    """

    def judged(text: str) -> str:
        try:
            take(text)
        except UsageError as error:
            raise click.UsageError(str(error)) from error
        return text

    hint = f"{words}, such as: {example}" + (f" (Enter: {left})" if left else "")
    talk(hint)
    try:
        answer: str = click.prompt(
            ">",
            prompt_suffix=" ",
            err=True,
            value_proc=judged,
            default="",
            show_default=False,
        )
    except click.Abort:
        talk()
        raise
    return answer


def _words(answers: Mapping[str, str]) -> dict[str, str]:
    """Return the replacement of each of the template's placeholders."""
    return {
        "name": answers["name"],
        "description": described(answers),
        "organization": answers["organization"],
        "about": answers["about"],
        "facts": answers["fact"],
        "contact": answers["contact"],
    }


def _values(answers: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that are no placeholder in the template."""
    optional = {key: answers[key] for key in ("model", "public_url") if answers.get(key)}
    return {"provider.url": answers["url"], **optional}


def _say_next(name: str) -> None:
    talk()
    talk("Next:")
    talk(f"  put public documents into instances/{name}/grounding/; visitors can get to read all of it")
    talk(f"  read and change instances/{name}/system-prompt.md and agent.yaml")
    talk(f"  ./gatehouse check {name}                   every mistake at once, with its place and mend")
    talk(f"  GATEHOUSE_AGENT={name} ./gatehouse up      start it; without a model key the demo model answers")
