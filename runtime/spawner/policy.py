"""Turn path 7/13: agent + host + turn -> the complete container create body, every key with its reason. Pure.

This is the wire body of the engine's `POST /containers/create` (Docker Engine API 1.45), not an abstraction
of it, so that what a reviewer reads here is what `docker inspect` shows. In the order of the code:

    Image            by id, never by name: a tag that moves changes nothing (BODY-01)
    User             a uid and gid drawn per container: two turns share no identity, and never root (PRIV-01)
    Cmd              the CLI's arguments, as data for turn_init (cli_call.py); Entrypoint stays the image's
    Env              a closed list without any secret (KEY-01)
    WorkingDir       /grounding: what the CLI's file tools are confined to
    Hostname         fixed: no container id or host name to learn
    Healthcheck      none: nothing but turn_init starts processes
    NetworkDisabled  no network stack beyond loopback (NET-01, NET-02), said twice: here and as NetworkMode
    OpenStdin …      one line in, then end of file; a dead spawner closes it; no terminal
    StopTimeout      0: a turn is killed, never asked
    Labels           which turn, whose spawner, until when: all the reaper reads (LIFE-03); Compose's, which
                     the image brings, are emptied: Compose must never take a turn for a service

    HostConfig
    NetworkMode      none: no interface, no route, no resolver (NET-01)
    ReadonlyRootfs   nothing can be planted in the image's files (FS-02)
    CapDrop          ALL: no capability, in no set (PRIV-01)
    SecurityOpt      no-new-privileges, and our seccomp profile as its content, no file (PRIV-01, SYS-01)
    PidsLimit        a fork bomb stays in its container
    Memory, MemorySwap  equal: no swap; tmpfs counts to it
    NanoCpus         throttled, not trusted
    OomScoreAdj      when the host is out of memory, a turn goes first
    Ulimits          few descriptors; no core file
    Tmpfs            the only writable places: sized, noexec, nosuid, nodev (FS-02)
    ShmSize          /dev/shm, which the engine mounts noexec, nosuid, nodev
    Mounts           the pack's parts and the turn's own doors, read-only, by volume subpath (FS-01, SOCK-01)
    LogConfig        none: 10 GB on stdout never reach the host's disk
    IpcMode          private: no shared memory with anybody
    CgroupnsMode     private: the host's cgroup paths do not show
    AutoRemove       the engine removes the container when PID 1 ends, also with no spawner left (LIFE-02)
    Runtime          runc, or gVisor's runsc under a name of ours; gVisor does not take the inline profile
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime import layout
from runtime.spawner.cli_call import command, environment

if TYPE_CHECKING:
    from runtime.agents.definition import AgentDefinition

RUNC = "runc"
GVISOR = "runsc-gatehouse"
RUNTIMES = (RUNC, GVISOR)

COMPOSE_LABELS = {f"com.docker.compose.{name}": "" for name in ("project", "service", "version")}
_TMPFS = "rw,noexec,nosuid,nodev"
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Host:
    """What is the same for every turn of this spawner. `cpus` in cores, `seccomp` the profile as JSON."""

    image_id: str
    packs_volume: str
    doors_volume: str
    owner: str
    seccomp: str
    runtime: str = RUNC
    memory_bytes: int = 1024 * _MIB
    cpus: float = 2.0
    pids: int = 256


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """What is this turn's alone: its id (32 hex digits), uid and gid, and Unix time when it must be gone."""

    turn: str
    uid: int
    deadline: float


def create_body(agent: AgentDefinition, pack: str, host: Host, facts: TurnFacts) -> dict[str, Any]:
    """Return the create body for one turn of `agent` on the pack of that digest."""
    return {
        "Image": host.image_id,
        "User": f"{facts.uid}:{facts.uid}",
        "Cmd": command(agent),
        "Env": environment(),
        "WorkingDir": layout.TURN_GROUNDING,
        "Hostname": "turn",
        "Domainname": "",
        "Healthcheck": {"Test": ["NONE"]},
        "NetworkDisabled": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "OpenStdin": True,
        "StdinOnce": True,
        "Tty": False,
        "StopTimeout": 0,
        "Labels": {
            layout.LABEL_TURN: facts.turn,
            layout.LABEL_OWNER: host.owner,
            layout.LABEL_DEADLINE: str(int(facts.deadline)),
            **COMPOSE_LABELS,
        },
        "HostConfig": {
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": _security_options(host),
            "PidsLimit": host.pids,
            "Memory": host.memory_bytes,
            "MemorySwap": host.memory_bytes,
            "NanoCpus": int(host.cpus * 1_000_000_000),
            "OomScoreAdj": 500,
            "Ulimits": [
                {"Name": "nofile", "Soft": 1024, "Hard": 1024},
                {"Name": "core", "Soft": 0, "Hard": 0},
            ],
            "Tmpfs": {
                "/tmp": f"{_TMPFS},size=64m,mode=1777",  # noqa: S108  its own tmpfs
                layout.TURN_HOME: f"{_TMPFS},size=64m,mode=0700,uid={facts.uid},gid={facts.uid}",
                "/run/turn": f"{_TMPFS},size=1m,mode=0700,uid={facts.uid},gid={facts.uid}",
            },
            "ShmSize": 16 * _MIB,
            "Mounts": [
                _mount(host.packs_volume, f"{pack}/grounding", layout.TURN_GROUNDING),
                *(
                    _mount(host.packs_volume, f"{pack}/extra/{number}", f"{layout.TURN_EXTRA}/{number}")
                    for number in range(len(agent.grounding.extra))
                ),
                _mount(host.packs_volume, f"{pack}/instance", layout.TURN_INSTANCE),
                _mount(host.doors_volume, facts.turn, layout.TURN_DOORS),
            ],
            "LogConfig": {"Type": "none", "Config": {}},
            "IpcMode": "private",
            "CgroupnsMode": "private",
            "AutoRemove": True,
            "Runtime": host.runtime,
        },
    }


def _security_options(host: Host) -> list[str]:
    options = ["no-new-privileges"]
    if host.runtime != GVISOR:
        options.append(f"seccomp={host.seccomp}")
    return options


def _mount(volume: str, subpath: str, target: str) -> dict[str, Any]:
    """Return one read-only mount of a folder of a volume; NoCopy, so that the image's files never fill it."""
    return {
        "Type": "volume",
        "Source": volume,
        "Target": target,
        "ReadOnly": True,
        "VolumeOptions": {"NoCopy": True, "Subpath": subpath},
    }
