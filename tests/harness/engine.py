"""A Docker engine of the tests' own, to be killed, stopped and started again beside the host's.

It runs in a network namespace of its own: a second engine without one deletes the first one's bridge. It
has a containerd of its own, started beside it as most hosts do: a dockerd that starts its own waits ten
seconds for the one that a killed dockerd left (seen, 26.1). It holds the turn image under the id that it has
on the host's engine. Nothing of it is left at the end: its containers, its containerd and shims, its mounts
and its folder go with it, and only what it started.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import docker as docker_py

from runtime import layout
from runtime.spawner.cli_call import CLAUDE
from tests.harness.quick_cli import KEPT
from tests.harness.stack import docker, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGE = "gatehouse-turn:dev"
QUICK_IMAGE = "gatehouse-turn-quick:dev"
QUICK_CLI = Path(__file__).with_name("quick_cli.py")
CONTAINERD = """
version = 2
root = "{folder}/containerd"
state = "{folder}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "{folder}/containerd.sock"
"""
START_SECONDS = 30.0
STOP_SECONDS = 15.0
MOUNTINFO = Path("/proc/self/mountinfo")
PROC = Path("/proc")


def answer(path: Path, target: str) -> bytes | None:
    """Return the body of a 200 to `GET target` on a Unix socket, or None when there is no such answer."""
    status, body = exchange(path, "GET", target)
    return body if status == 200 else None


def exchange(path: Path, method: str, target: str) -> tuple[int, bytes]:
    """Return status and body of the answer to a request on a Unix socket; 0 when there is none.

    By hand, because neither docker-py nor httpx2 closes the connection that a socket refuses.
    """
    data = b""
    with socket.socket(socket.AF_UNIX) as asking, contextlib.suppress(OSError):
        asking.settimeout(5)
        asking.connect(str(path))
        asking.sendall(f"{method} {target} HTTP/1.0\r\nhost: test\r\n\r\n".encode())
        while piece := asking.recv(65536):
            data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    words = head.partition(b"\r\n")[0].split()
    return (int(words[1]), body) if len(words) > 1 else (0, b"")


@dataclass
class OwnEngine:
    """The engine and its folder. Use it as a context manager."""

    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="gh-", dir="/tmp")))
    _containerd: subprocess.Popen[bytes] | None = None
    _process: subprocess.Popen[bytes] | None = None
    _frozen: bool = False

    def __enter__(self) -> Self:
        try:
            self.start()
            self.load(IMAGE)
        except BaseException:
            self.destroy()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    # -- life ---------------------------------------------------------------------------------------------
    @property
    def socket(self) -> Path:
        return self.folder / "docker.sock"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "dockerd.log"

    def start(self, *options: str) -> None:
        """Start the engine, anew or again, with these options of dockerd too; returns when it answers."""
        assert os.geteuid() == 0, "these tests start an engine of their own: run them as root"
        for program in ("unshare", "dockerd", "containerd"):
            assert shutil.which(program), f"these tests start an engine of their own: {program} is not there"
        assert self._process is None, "it runs already"
        if self._containerd is None:
            config = self.folder / "containerd.toml"
            config.write_text(CONTAINERD.format(folder=self.folder))
            self._containerd = self._spawn("containerd", f"--config={config}")
            eventually((self.folder / "containerd.sock").exists, what="containerd's socket")
        self._process = self._spawn(
            "dockerd",
            f"--containerd={self.folder / 'containerd.sock'}",
            f"--data-root={self.data}",
            f"--exec-root={self.folder / 'exec'}",
            f"--pidfile={self.folder / 'docker.pid'}",
            f"--host=unix://{self.socket}",
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
            *options,
        )
        self._frozen = False
        eventually(self._answers, seconds=START_SECONDS, what=f"an answer of the engine (see {self.log})")

    def kill(self) -> None:
        """Kill the engine itself, as a crash would: its containerd, shims and containers live on."""
        process = self._running()
        process.kill()
        process.wait()
        self._process = None

    def freeze(self) -> None:
        """Stop the engine without ending it: it takes connections and answers nothing."""
        self._running().send_signal(signal.SIGSTOP)
        self._frozen = True

    def thaw(self) -> None:
        """Let a frozen engine go on."""
        self._running().send_signal(signal.SIGCONT)
        self._frozen = False

    def heal(self) -> None:
        """Have it running and answering, whatever a test did to it."""
        if self._process is None:
            self.start()
        elif self._frozen:
            self.thaw()

    def destroy(self) -> None:
        """Take everything away that it is and made."""
        with contextlib.suppress(AssertionError, OSError):
            self.heal()
            with self.client() as api:
                for container in api.containers(all=True):
                    api.remove_container(container["Id"], force=True)
        for process in (self._process, self._containerd):
            if process is not None:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(STOP_SECONDS)
                process.kill()
                process.wait()
        self._process = self._containerd = None
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        eventually(lambda: not self.processes(), what="no process of the engine")
        for point in reversed(self._mounts()):
            subprocess.run(["umount", "--lazy", point], check=True)
        shutil.rmtree(self.folder)

    # -- what it holds ------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def client(self, seconds: int = 10) -> Iterator[Any]:
        """Return a client of the engine itself, past any proxy. docker-py has no types for it."""
        api: Any = docker_py.APIClient(f"unix://{self.socket}", version="1.45", timeout=seconds)
        try:
            yield api
        finally:
            api.close()

    def load(self, image: str) -> None:
        """Copy an image from the host's engine; it keeps its id."""
        saving = subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE)
        assert saving.stdout is not None
        with saving.stdout:
            loading = subprocess.run(
                ["docker", "--host", f"unix://{self.socket}", "load", "--quiet"],
                stdin=saving.stdout,
                capture_output=True,
                check=False,
            )
        assert saving.wait() == 0, f"the host's engine has no image {image}: build it first"
        assert loading.returncode == 0, loading.stderr
        with self.client() as api:
            assert api.inspect_image(image)["Id"] == docker("inspect", "--format", "{{.Id}}", image).strip()

    def quick(self, image: str, *, keep: bool = False) -> str:
        """Return the name of an image like `image` with quick_cli.py in the CLI's place.

        `keep` leaves the CLI beside it, for turns that ask for it: some seconds for its 200 megabytes.
        """
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            program = archive.gettarinfo(str(QUICK_CLI), "claude")
            program.mode, program.uid, program.gid = 0o755, 0, 0
            with QUICK_CLI.open("rb") as file:
                archive.addfile(program, file)
        with self.client(seconds=60) as api:
            container = self._apart(image) if keep else api.create_container(image)["Id"]
            api.put_archive(container, "/usr/local/bin", packed.getvalue())
            api.commit(container, QUICK_IMAGE, conf=api.inspect_image(image)["Config"] if keep else None)
            api.remove_container(container)
        return QUICK_IMAGE

    def _apart(self, image: str) -> str:
        """Return a container of an image, ended, in which the CLI has another name."""
        move = f"import os; os.rename({CLAUDE!r}, {KEPT!r})"
        with self.client(seconds=60) as api:
            container = api.create_container(
                image,
                ["-c", move],
                entrypoint=["/usr/bin/python3"],
                user="0:0",
                host_config=api.create_host_config(network_mode="none"),
            )["Id"]
            api.start(container)
            assert api.wait(container)["StatusCode"] == 0, api.logs(container)
        return str(container)

    def volume(self, name: str) -> Path:
        """Make a volume and return where it is."""
        with self.client() as api:
            return Path(api.create_volume(name)["Mountpoint"])

    def turns(self) -> list[str]:
        """Return the ids of all turn containers, running or not."""
        with self.client() as api:
            found = api.containers(all=True, filters={"label": layout.LABEL_TURN})
        return [one["Id"] for one in found]

    def processes(self) -> list[int]:
        """Return the processes whose arguments name its folder: engine, containerd and shims."""
        found = []
        mark = f"{self.folder}/".encode()
        for entry in PROC.iterdir():
            if entry.name.isdecimal() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if mark in (entry / "cmdline").read_bytes():
                        found.append(int(entry.name))
        return found

    def shims(self) -> list[int]:
        """Return the processes that hold a container, one for each."""
        found = []
        for pid in self.processes():
            with contextlib.suppress(OSError):
                if b"containerd-shim" in (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")[0]:
                    found.append(pid)
        return found

    def _spawn(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a program in a network namespace of its own and out of the terminal's reach."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                ["unshare", "--net", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "it does not run"
        return self._process

    def _answers(self) -> bool:
        process = self._running()
        assert process.poll() is None, (
            f"dockerd ended with {process.returncode}:\n{self.log.read_text()[-3000:]}"
        )
        return answer(self.socket, "/_ping") is not None

    def _mounts(self) -> list[str]:
        points = [line.split(" ")[4] for line in MOUNTINFO.read_text().splitlines()]
        return [point for point in points if point.startswith(f"{self.folder}/")]
