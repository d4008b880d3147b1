"""What every container of the stack is allowed to be: the one table that `docker inspect` is compared with.

A line here that changes is a change of a boundary (architecture §2), and belongs into a review.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MIB = 1024 * 1024
SOCKETS = "/run/gatehouse/"
TMPFS = {"/tmp": "size=16m,mode=1777,noexec,nosuid,nodev"}
AGENT_SETTINGS = frozenset(
    {
        "GATEHOUSE_AGENT",
        "PUBLIC_AGENT_URL",
        "AGENT_HOST",
        "AGENT_PORT",
        "CLAUDE_MODEL",
        "GROUNDING_DIR",
        "CLAUDE_BINARY",
        "ENVIRONMENT",
        "CORS_ALLOWED_ORIGINS",
    }
)
MODEL_SETTINGS = frozenset(
    {
        "MODEL",
        "MODEL_UPSTREAM_URL",
        "MODEL_AUTH_HEADER",
        "MODEL_DAILY_USD",
    }
)
IMAGE_SETTINGS = frozenset(
    {
        "PATH",
        "PYTHONPATH",
        "PYTHONSAFEPATH",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
    }
)
TURN_IMAGE_SETTINGS = frozenset(
    {
        "PATH",
        "HOME",
        "LANG",
    }
)


@dataclass(frozen=True, slots=True)
class Row:
    """One container. `volumes` maps a volume to its place, `binds` a place to (source, writable).

    A source that starts with `/` is the host's, `./` is the repository's; the volumes are writable all.
    """

    user: str
    networks: frozenset[str]
    memory_bytes: int
    volumes: dict[str, str] = field(default_factory=dict)
    binds: dict[str, tuple[str, bool]] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    settings: frozenset[str] = IMAGE_SETTINGS
    restart: str = "unless-stopped"
    holds_engine: bool = False


INSTANCES = {"/srv/gatehouse/instances": ("./instances", False)}

TABLE = {
    "turn": Row(
        user="65534:65534",
        networks=frozenset(),
        memory_bytes=64 * MIB,
        settings=TURN_IMAGE_SETTINGS,
        restart="no",
    ),
    "ingress": Row(
        user="10205:10101",
        networks=frozenset({"edge"}),
        memory_bytes=64 * MIB,
        volumes={"front": SOCKETS + "front"},
        ports=("127.0.0.1:PORT->8011/tcp",),
    ),
    "front": Row(
        user="10201:10101",
        networks=frozenset(),
        memory_bytes=384 * MIB,
        volumes={"front": SOCKETS + "front", "spawn": SOCKETS + "spawn", "ops": SOCKETS + "ops"},
        binds=INSTANCES,
        settings=IMAGE_SETTINGS | AGENT_SETTINGS,
    ),
    "spawner": Row(
        user="0:0",
        groups=("10101",),
        networks=frozenset(),
        memory_bytes=256 * MIB,
        volumes={
            "spawn": SOCKETS + "spawn",
            "ctl-model": SOCKETS + "ctl-model",
            "doors": SOCKETS + "doors",
            "ops": SOCKETS + "ops",
            "packs": "/var/lib/gatehouse/packs",
        },
        binds={**INSTANCES, "/var/run/docker.sock": ("/var/run/docker.sock", True)},
        settings=IMAGE_SETTINGS | AGENT_SETTINGS,
        holds_engine=True,
    ),
    "modelproxy": Row(
        user="10203:10101",
        networks=frozenset({"egress"}),
        memory_bytes=256 * MIB,
        volumes={
            "ctl-model": SOCKETS + "ctl-model",
            "doors": SOCKETS + "doors",
            "ops": SOCKETS + "ops",
            "state-model": "/var/lib/gatehouse/state",
        },
        binds={"/run/secrets/model_api_key": ("/dev/null", False)},
        settings=IMAGE_SETTINGS | MODEL_SETTINGS,
    ),
}

# Folders of sockets: who may list them, and who may replace what is in them.
VOLUME_OPTIONS = {
    "front": "size=1m,mode=2770,uid=0,gid=10101",
    "spawn": "size=1m,mode=2770,uid=0,gid=10101",
    "ctl-model": "size=1m,mode=2770,uid=0,gid=10101",
    "ops": "size=1m,mode=3770,uid=0,gid=10101",
    "doors": "size=1m,mode=1771,uid=0,gid=10101",
    "packs": None,
    "state-model": None,
}

# The program files of each image: what a service need not know is not there.
SHARED = frozenset({"__init__", "layout", "errors"})
SERVES = SHARED | {"health", "log", "ops", "serving"}
PROGRAMS = {
    "ingress": SHARED | {"ingress"},
    "front": SERVES | {"server", "agents", "turn", "front"},
    "spawner": SERVES | {"agents", "turn", "spawner"},
    "modelproxy": SERVES | {"modelproxy"},
}
