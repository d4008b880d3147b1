"""Makes an instance's folder from the template: whole, checked and with the right modes, or not at all.

It is put together in a folder beside the instances that has a tree's shape of its own, checked there, and
moved with one rename. So an interruption leaves nothing, and an answer that the check would refuse makes
nothing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runtime.agents.check import check_instances
from runtime.agents.fields import ENVIRONMENT, OVERRIDES
from runtime.agents.folders import AGENT_FILE
from runtime.agents.placeholders import TEMPLATE
from runtime.cli.filling import fill_document, fill_settings
from runtime.errors import ConfigError, HostError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runtime.errors import Problem

# The services read the folder as users of their own, whatever umask the author works with.
_FOLDER_MODE: Final = 0o755
_FILE_MODE: Final = 0o644
_FILLED: Final = frozenset({".md"})


def refuse_taken(root: Path, name: str) -> None:
    """Raise UsageError when there is something at the place of the new instance already."""
    if os.path.lexists(root / "instances" / name):
        raise UsageError(f"instances/{name} exists already", "choose another name, or remove it first")


def make_instance(
    root: Path, name: str, words: Mapping[str, str], values: Mapping[str, str], environ: Mapping[str, str]
) -> None:
    """Make `root/instances/<name>` with the template filled in (`filling.fill_settings` has the arguments).

    Raises UsageError when the name is taken, ConfigError with what the check says of the result, and
    HostError when the disk or its permissions are in the way; there is no folder then.
    """
    refuse_taken(root, name)
    with _staged(root, name, words, values, environ) as (made, problems):
        if problems:
            raise ConfigError(problems)
        refuse_taken(root, name)
        made.rename(root / "instances" / name)


def problems_of(
    root: Path, name: str, words: Mapping[str, str], values: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[Problem, ...]:
    """Return what the check would say of `make_instance` with these arguments, and make nothing."""
    with _staged(root, name, words, values, environ) as (_, problems):
        return problems


@contextmanager
def _staged(
    root: Path, name: str, words: Mapping[str, str], values: Mapping[str, str], environ: Mapping[str, str]
) -> Iterator[tuple[Path, tuple[Problem, ...]]]:
    """Put the folder together aside, and yield it with what the check says; whatever stays is removed."""
    instances = root / "instances"
    staged = None
    try:
        staged = Path(tempfile.mkdtemp(prefix=".new-", dir=instances))
        made = staged / "instances" / name
        _copy(instances / TEMPLATE, made, words, values)
        own = {key: value for key, value in environ.items() if key not in OVERRIDES and key != ENVIRONMENT}
        checks = check_instances(staged, (name,), own)
        yield made, tuple(problem for checked in checks for problem in checked.problems)
    except OSError as error:
        place = error.filename or instances
        raise HostError(
            f"instances/{name} cannot be made: {place}: {error.strerror}",
            f"is {instances} writable, and whole?",
        ) from error
    finally:
        if staged is not None:
            shutil.rmtree(staged, ignore_errors=True)


def _copy(template: Path, made: Path, words: Mapping[str, str], values: Mapping[str, str]) -> None:
    """Copy the template's regular files, filled in; what Python leaves behind in `tools/` is passed over."""
    made.mkdir(parents=True)
    made.chmod(_FOLDER_MODE)
    for source in sorted(template.rglob("*")):
        target = made / source.relative_to(template)
        if "__pycache__" in target.parts or source.is_symlink():
            continue
        if source.is_dir():
            target.mkdir()
            target.chmod(_FOLDER_MODE)
        elif source.is_file():
            if source == template / AGENT_FILE:
                target.write_text(fill_settings(source.read_text("utf-8"), words, values), "utf-8")
            elif source.suffix in _FILLED:
                target.write_text(fill_document(source.read_text("utf-8"), words), "utf-8")
            else:
                shutil.copyfile(source, target)
            target.chmod(_FILE_MODE)
