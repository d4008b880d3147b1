"""Where things are inside the services, and as whom they run: the one place for paths, ids and label names.

The compose files repeat these values, because YAML cannot import Python: tests/contract/test_stack_files.py
compares them.
"""

from __future__ import annotations

from pathlib import Path

# --- sockets (tmpfs volumes, group `gatehouse`) --------------------------------------------------------
RUN = Path("/run/gatehouse")
FRONT_LOCAL_SOCKET = RUN / "front-local" / "local.sock"
FRONT_TUNNEL_SOCKET = RUN / "front-tunnel" / "tunnel.sock"
SPAWN_SOCKET = RUN / "spawn" / "spawn.sock"
MODEL_CONTROL_SOCKET = RUN / "ctl-model" / "control.sock"
OPS = RUN / "ops"
DOORS = RUN / "doors"

# --- state (named volumes) -----------------------------------------------------------------------------
PACKS = Path("/var/lib/gatehouse/packs")
STATE = Path("/var/lib/gatehouse/state")

# --- configuration, mounted read-only ------------------------------------------------------------------
ROOT = Path("/srv/gatehouse")  # stands for the repository root: relative grounding paths resolve against it
INSTANCES = ROOT / "instances"
MODEL_KEY_FILE = Path("/run/secrets/model_api_key")

# --- time ----------------------------------------------------------------------------------------------
TURN_MAX_SECONDS = 900  # the most that an agent's `timeout` may be; what carries a turn holds out longer

# --- identities ----------------------------------------------------------------------------------------
GID_GATEHOUSE = 10101
UID_FRONT = 10201
UID_SPAWNER = 10202
UID_MODELPROXY = 10203
UID_INGRESS = 10205
UID_TUNNEL = 10206
TURN_UIDS = range(20000, 60000)  # one drawn per turn container, uid and gid alike

# --- inside a turn container ---------------------------------------------------------------------------
TURN_GROUNDING = "/grounding"
TURN_EXTRA = "/extra"
TURN_INSTANCE = "/instance"
TURN_TOOLS = "/instance/tools"
TURN_PERSONA = "/instance/system-prompt.md"
TURN_DOORS = "/run/doors"
TURN_HOME = "/home/agent"

# --- the engine's labels -------------------------------------------------------------------------------
LABEL_TURN = "gatehouse.turn"
LABEL_OWNER = "gatehouse.owner"
LABEL_DEADLINE = "gatehouse.deadline"

MINIMUM_ENGINE_API = (1, 45)
