"""Decides which directories an instance may make readable to visitors, before anything reads them.

This is the most important setting of an instance: a first implementation of the same idea fell back to the
repository's root when nothing was configured. So there is no default, and a directory that holds the
repository, a home or the system is refused whatever the file says.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.agents.documents import from_root
from runtime.agents.findings import AtSetting
from runtime.agents.placeholders import variables
from runtime.agents.quoting import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runtime.agents.values import Values

SYSTEM = tuple(Path(name) for name in ("/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/var/run"))
MEND = "name the folder of public documents itself"


def named_directories(
    values: Values, root: Path, instance: Path, environ: Mapping[str, str], *, check_sources: bool
) -> list[tuple[str, Path]]:
    """Return (setting, directory) for each that can be used; what is wrong with the others is reported."""
    named = [("grounding_dir", values.found["grounding_dir"])] if "grounding_dir" in values.found else []
    extra = values.found.get("extra_read_dirs", ())
    named += [(f"extra_read_dirs[{number}]", text) for number, text in enumerate(extra)]
    directories: list[tuple[str, Path]] = []
    for setting, text in named:
        path = resolve_directory(text, root, instance, environ)
        if isinstance(path, str):
            mend = _likely(text, instance) or "write an absolute path, or one below the repository's root"
            values.places[setting].add(f"{shown(text)!r} {path}", mend)
            continue
        message = refuse_directory(path, root, instance, environ)
        if not message and check_sources:
            message = check_directory(path, root, instance, environ)
        if message:
            mend = MEND
            if message == "does not exist":
                mend = _likely(text, instance) or f"create it, or {MEND}"
            values.places[setting].add(f"{shown(from_root(path, root))!r} {message}", mend)
            continue
        directories.append((setting, path))
    return directories


def given_twice(directories: list[tuple[str, Path]], root: Path) -> Iterator[AtSetting]:
    """Yield each directory that an earlier setting gives as well: itself, in another, or with it inside."""
    earlier: list[tuple[str, Path, Path]] = []
    for setting, path in directories:
        real = path.resolve()
        for other_setting, other, other_real in earlier:
            name = f"{shown(from_root(other, root))!r}"
            if real == other_real:
                message = f"is the directory that {other_setting} names"
            elif other_real in real.parents:
                message = f"lies within {name}, which {other_setting} names"
            elif real in other_real.parents:
                message = f"holds {name}, which {other_setting} names"
            else:
                continue
            mend = "name each document once: every file in both is searched and listed twice"
            yield AtSetting(setting, f"{shown(from_root(path, root))!r} {message}", mend, certain=False)
            break
        earlier.append((setting, path, real))


def _likely(text: str, instance: Path) -> str:
    """Say what a directory that is not there was most likely meant to be, or return ""."""
    for home in ("$HOME/", "${HOME}/"):
        if text.startswith(home):
            return f"write `~/{shown(text.removeprefix(home))}`"
    inside = re.sub(r"^(?:\$instance_dir/|\./)", "", text)
    if not inside.startswith(("/", "~", "$")) and ".." not in inside and (instance / inside).is_dir():
        return f"write `${{instance_dir}}/{shown(inside)}`"
    return ""


def resolve_directory(text: str, root: Path, instance: Path, environ: Mapping[str, str]) -> Path | str:
    """Return the absolute directory that a setting names, or one sentence about why it names none.

    `${instance_dir}/` is the instance's folder and `~/` is `HOME` of `environ`. A relative path starts at
    `root` and has to stay below it, because services see the root under another name and a path through `..`
    would end elsewhere there. Links are not followed here.
    """
    if not text.isprintable():
        return "holds a character that cannot be printed"
    if text.startswith("${instance_dir}/"):
        text = os.fspath(instance) + text.removeprefix("${instance_dir}")
    for found in variables(text):
        name = shown(found.text)
        return f"holds {name}, which nothing fills in here; a path may begin with ${{instance_dir}}/"
    if text == "~" or text.startswith("~/"):
        home = environ.get("HOME", "")
        if not home.startswith("/"):
            return "starts at ~, but HOME is not set"
        return Path(os.path.normpath(home + text[1:]))
    if text.startswith("~"):
        return "names another user's home"
    if text.startswith("/"):
        return Path(os.path.normpath("/" + text.lstrip("/")))
    path = Path(os.path.normpath(root / text))
    if path != root and root not in path.parents:
        return "is a relative path that leaves the repository"
    return path


def refuse_directory(path: Path, root: Path, instance: Path, environ: Mapping[str, str]) -> str:
    """Say why `path` must not become readable to visitors, or return "". Goes by names; follows no link."""
    if path == Path("/") or path == root or path in root.parents:
        return "holds the whole repository"
    if path == instance or path in instance.parents:
        return "holds the instance's own files"
    if any(path == name or name in path.parents for name in SYSTEM):
        return "belongs to the system"
    home = environ.get("HOME", "")
    if home.startswith("/") and len(home) > 1 and (path == Path(home) or path in Path(home).parents):
        return "holds your home directory"
    return ""


def check_directory(path: Path, root: Path, instance: Path, environ: Mapping[str, str]) -> str:
    """Say why the directory on disk cannot be used, or return "". A link counts as what it leads to."""
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return "does not exist"
    if not real.is_dir():
        return "is not a directory"
    if not os.access(real, os.R_OK | os.X_OK):
        return "cannot be read by this user"
    return refuse_directory(real, root.resolve(), instance.resolve(), environ)
