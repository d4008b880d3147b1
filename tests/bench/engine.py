"""What the figures of a whole stack need from this host, looked at before anything is measured."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from runtime.cli.said import is_engine_gone, last_line
from runtime.errors import EngineUnavailable, HostError, ImageError

if TYPE_CHECKING:
    from collections.abc import Sequence

IMAGES = tuple(f"gatehouse-{name}:dev" for name in ("turn", "front", "spawner", "modelproxy", "ingress"))
SECONDS = 20.0
WITHOUT = "or measure without one: just bench --only front-rate"
NO_SUCH_IMAGE = "no such image"


def check_engine(images: Sequence[str] = IMAGES) -> None:
    """Look whether an engine answers that has the images, and compose.

    Raises EngineUnavailable or HostError (exit 4), ImageError (exit 5).
    """
    missing = [image for image in images if not _has(image)]
    if missing:
        raise ImageError(f"The engine has no image {' and no '.join(missing)}.", "docker compose build")
    if _docker("compose", "version").returncode:
        raise HostError("The docker client has no compose plugin.", "install docker-compose-plugin")


def _has(image: str) -> bool:
    done = _docker("image", "inspect", "--format", "{{.Id}}", image)
    if done.returncode == 0:
        return True
    complaint = last_line(done.stderr)
    if is_engine_gone(complaint) or NO_SUCH_IMAGE not in complaint.lower():
        raise EngineUnavailable(f"No Docker engine answers: {complaint}", f"start it, {WITHOUT}")
    return False


def _docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["docker", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except OSError as error:
        raise EngineUnavailable(
            f"The docker client cannot be run: {error.strerror}.", f"install Docker, {WITHOUT}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise EngineUnavailable(
            f"No Docker engine answers within {SECONDS:.0f} s.", f"is it well? docker info; {WITHOUT}"
        ) from error
