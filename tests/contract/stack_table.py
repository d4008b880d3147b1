"""What every container of the stack is allowed to be: the one table that `docker inspect` is compared with.

A line here that changes is a change of a boundary (architecture §2), and belongs into a review.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime.agents.fields import OVERRIDES
from runtime.front.settings import NAMES as FRONT_NAMES
from runtime.modelproxy.settings import Settings as ModelSettings
from runtime.spawner.settings import TABLE as SPAWNER_TABLE

MIB = 1024 * 1024
SOCKETS = "/run/gatehouse/"
TMPFS = {"/tmp": "size=16m,mode=1777,noexec,nosuid,nodev"}
# What an operator can set is what the services say in their tables of settings. Nothing is left out but the
# places that the deployment itself decides.
AGENT_SETTINGS = frozenset({"GATEHOUSE_AGENT", "ENVIRONMENT", *OVERRIDES})
FRONT_SETTINGS = AGENT_SETTINGS | FRONT_NAMES
SPAWNER_PLACES = frozenset({"DOCKER_SOCKET_PATH", "PACKS_VOLUME", "DOORS_VOLUME"})
SPAWNER_SETTINGS = AGENT_SETTINGS | {one.name for one in SPAWNER_TABLE} - SPAWNER_PLACES
MODEL_PLACES = frozenset(
    {"MODEL_API_KEY_FILE", "MODEL_STATE_DIR", "MODEL_CONTROL_SOCKET", "MODEL_DOORS_DIR", "MODEL_OPS_DIR"}
)
PROXY_SETTINGS = frozenset({"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"})  # for MODEL_PROXY_FROM_ENVIRONMENT
MODEL_SETTINGS = (
    PROXY_SETTINGS | {str(one.alias) for one in ModelSettings.model_fields.values()} - MODEL_PLACES
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
    stop_seconds: int | None = None
    resolvers: tuple[str, ...] = ()
    holds_engine: bool = False
    only_read: frozenset[str] = frozenset()  # volumes whose sockets it may reach and not replace


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
        memory_bytes=128 * MIB,
        volumes={"front-local": SOCKETS + "front-local"},
        only_read=frozenset({"front-local"}),
        ports=("127.0.0.1:PORT->8011/tcp",),
        stop_seconds=55,
        resolvers=("127.0.0.1",),
    ),
    "front": Row(
        user="10201:10101",
        networks=frozenset(),
        memory_bytes=384 * MIB,
        volumes={
            "front-local": SOCKETS + "front-local",
            "front-tunnel": SOCKETS + "front-tunnel",
            "spawn": SOCKETS + "spawn",
            "ops-front": SOCKETS + "ops",
        },
        only_read=frozenset({"spawn"}),
        binds=INSTANCES,
        settings=IMAGE_SETTINGS | FRONT_SETTINGS,
        stop_seconds=55,
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
            "ops-spawner": SOCKETS + "ops",
            "packs": "/var/lib/gatehouse/packs",
        },
        only_read=frozenset({"ctl-model"}),
        binds={**INSTANCES, "/var/run/docker.sock": ("/var/run/docker.sock", True)},
        settings=IMAGE_SETTINGS | SPAWNER_SETTINGS,
        stop_seconds=30,
        holds_engine=True,
    ),
    "modelproxy": Row(
        user="10203:10101",
        networks=frozenset({"egress"}),
        memory_bytes=256 * MIB,
        volumes={
            "ctl-model": SOCKETS + "ctl-model",
            "doors": SOCKETS + "doors",
            "ops-modelproxy": SOCKETS + "ops",
            "state-model": "/var/lib/gatehouse/state",
        },
        binds={
            "/run/secrets/model_api_key": ("/dev/null", False),
            "/run/secrets/model_ca": ("/dev/null", False),
        },
        settings=IMAGE_SETTINGS | MODEL_SETTINGS,
    ),
}

# Folders of sockets: who may list them, and who may replace what is in them.
SOCKET_FOLDER = "size=1m,nr_inodes=64,mode=2770,uid=0,gid=10101"
VOLUME_OPTIONS = {
    "front-local": SOCKET_FOLDER,
    "front-tunnel": SOCKET_FOLDER,
    "spawn": SOCKET_FOLDER,
    "ctl-model": SOCKET_FOLDER,
    "ops-front": SOCKET_FOLDER,
    "ops-spawner": SOCKET_FOLDER,
    "ops-modelproxy": SOCKET_FOLDER,
    "doors": "size=1m,nr_inodes=4096,mode=1771,uid=0,gid=10101",
    "packs": None,
    "state-model": None,
}

# The program files of each image: what a service need not know is not there.
SHARED = frozenset({"__init__", "layout", "errors"})
SERVES = SHARED | {"bodies", "health", "inflow", "log", "ops", "serving"}
PROGRAMS = {
    "ingress": SHARED | {"ingress"},
    "front": SERVES | {"strict_json", "server", "agents", "turn", "front"},
    "spawner": SERVES | {"strict_json", "agents", "turn", "spawner"},
    "modelproxy": SERVES | {"strict_json", "turn", "modelproxy"},
}
