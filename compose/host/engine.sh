# shellcheck shell=sh
# The Docker engine: is there one that is good enough, and if none answers, may and can it be started here?
# It is always the engine that is asked, because a client without an engine may be on the PATH.

ENGINE_MEND="install Docker Engine 26.0 or later with its compose and buildx plugins, start it, and run this again"

engine_ready() {
  engine_socket
  if [ -e "$GATEHOUSE_STATE/installing" ]; then
    say "an earlier installation did not finish: going on with it"
    engine_install
  fi
  engine_answers || engine_bring
  engine_new_enough
  engine_plugins
  engine_space
}

# The stack binds the engine's socket and folders of this host: an engine elsewhere cannot serve it.
engine_socket() {
  engine_host=${DOCKER_HOST-}
  if [ -z "$engine_host" ] && command -v docker >/dev/null 2>&1; then
    engine_host=$(docker context inspect --format '{{.Endpoints.docker.Host}}' 2>/dev/null) || engine_host=
  fi
  case "$engine_host" in
    '') DOCKER_SOCKET=/var/run/docker.sock ;;
    unix://*) DOCKER_SOCKET=${engine_host#unix://} ;;
    *) fail 4 engine-unavailable "the docker client talks to $engine_host, which is not on this host" "unset DOCKER_HOST, or docker context use default" ;;
  esac
  export DOCKER_SOCKET
}

# Succeeds when the engine answers, with ENGINE_API set; else ENGINE_WORDS holds what the client said.
engine_answers() {
  ENGINE_WORDS="no docker client"
  ENGINE_API=
  command -v docker >/dev/null 2>&1 || return 1
  ENGINE_WORDS=$(within 30 docker version --format 'api {{.Server.APIVersion}}' 2>&1) || return 1
  ENGINE_API=$(printf '%s\n' "$ENGINE_WORDS" | sed -n 's/^api \([0-9][0-9]*\.[0-9][0-9]*\)$/\1/p' | tail -n 1)
  [ -n "$ENGINE_API" ]
}

engine_bring() {
  case "$ENGINE_WORDS" in
    *'ermission denied'*)
      fail 4 engine-unavailable "$(id -un) has no permission for the engine's socket $DOCKER_SOCKET" \
        "run as root, or: usermod -aG docker $(id -un), and log in again"
      ;;
  esac
  if ! command -v dockerd >/dev/null 2>&1; then
    if [ -n "${DOCKER_HOST-}" ]; then
      fail 4 engine-unavailable "no engine answers at $DOCKER_SOCKET" "start it, or unset DOCKER_HOST"
    fi
    engine_install
  fi
  engine_start
}

# --- starting ------------------------------------------------------------------------------------------
engine_start() {
  is_root || fail 4 engine-unavailable "the Docker engine is installed but does not answer at $DOCKER_SOCKET" "start it: sudo systemctl start docker"
  engine_major=$(dockerd --version 2>/dev/null | sed -n 's/^Docker version \([0-9]*\).*/\1/p')
  [ "${engine_major:-99}" -ge 26 ] ||
    fail 4 engine-too-old "the installed Docker engine is version $engine_major" "$ENGINE_MEND"
  if [ -d "$HOST_FILES/run/systemd/system" ]; then
    say "starting the Docker engine with systemctl"
    logged engine systemctl start docker || :
    engine_wait 60 || fail 4 engine-unavailable "systemctl start docker brought up no engine at $DOCKER_SOCKET" "see journalctl -u docker"
    return 0
  fi
  say "starting the Docker engine (log: .gatehouse/dockerd.log)"
  for engine_try in 1 2 3; do
    engine_forget_stale
    if [ -z "$ENGINE_PID" ]; then
      setsid dockerd >>"$GATEHOUSE_STATE/dockerd.log" 2>&1 </dev/null 9>&- &
      ENGINE_PID=$!
    fi
    engine_wait 60 && return 0
    # A killed engine's process can stay a zombie for seconds: the next try finds its file stale.
    [ "$engine_try" = 3 ] || sleep 2
  done
  fail 4 engine-unavailable "dockerd does not come up: $(last_line "$GATEHOUSE_STATE/dockerd.log")" "see .gatehouse/dockerd.log"
}

# Deletes the pid files that speak of no process that lives, and sets ENGINE_PID to a dockerd that does. The engine takes
# a zombie for one that lives, and where PID 1 reaps late or never, a killed engine and its containerd stay zombies.
engine_forget_stale() {
  engine_alive "$HOST_FILES/var/run/docker/containerd/containerd.pid" containerd >/dev/null
  ENGINE_PID=$(engine_alive "$HOST_FILES/var/run/docker.pid" dockerd)
}

# engine_alive FILE NAME: print the pid in FILE if a process NAME lives under it; else delete FILE.
engine_alive() {
  [ -s "$1" ] || return 0
  engine_pid=$(cat "$1")
  engine_state=$(sed -n "s/^[0-9]* ($2) \([A-Za-z]\).*/\1/p" "$HOST_FILES/proc/$engine_pid/stat" 2>/dev/null) || engine_state=
  case "$engine_state" in
    '' | Z | X)
      say "removing the pid file of a $2 that is gone: $1"
      rm -f "$1"
      ;;
    *) printf '%s\n' "$engine_pid" ;;
  esac
}

# engine_wait SECONDS: until it answers; gives up early when the process that was started is gone.
engine_wait() {
  engine_left=$1
  while [ "$engine_left" -gt 0 ]; do
    engine_answers && return 0
    if [ -n "${ENGINE_PID-}" ]; then
      engine_state=$(sed -n 's/^[0-9]* ([^)]*) \([A-Za-z]\).*/\1/p' "/proc/$ENGINE_PID/stat" 2>/dev/null) || engine_state=
      case "$engine_state" in '' | Z | X) return 1 ;; esac
    fi
    sleep 1
    engine_left=$((engine_left - 1))
  done
  return 1
}

# --- good enough? --------------------------------------------------------------------------------------
# API 1.45 (Docker 26.0): volume subpaths and recursive read-only mounts.
engine_new_enough() {
  engine_api_major=${ENGINE_API%%.*}
  engine_api_minor=${ENGINE_API#*.}
  if [ "$engine_api_major" -lt 1 ] || { [ "$engine_api_major" -eq 1 ] && [ "$engine_api_minor" -lt 45 ]; }; then
    fail 4 engine-too-old "the Docker engine speaks API $ENGINE_API, and 1.45 (Docker 26.0) is the least" "$ENGINE_MEND"
  fi
}

engine_plugins() {
  engine_compose=$(docker compose version --short 2>/dev/null | sed -n 's/^v\{0,1\}\([0-9][0-9]*\.[0-9][0-9]*\).*/\1/p') || engine_compose=
  case "$engine_compose" in
    '') fail 4 host-not-ready "the docker client has no compose plugin" "install docker-compose-plugin (Debian: docker-compose, Ubuntu: docker-compose-v2)" ;;
    0.* | 1.* | 2.? | 2.1? | 2.2[0-2]) fail 4 host-not-ready "the compose plugin is version $engine_compose, and 2.23 is the least" "install a newer one" ;;
  esac
  docker buildx version >/dev/null 2>&1 ||
    fail 4 host-not-ready "the docker client has no buildx plugin" "install docker-buildx-plugin (Debian, Ubuntu: docker-buildx)"
}

# Images, layers and build cache take about 3 GiB the first time.
engine_space() {
  engine_folder=$(docker info --format '{{.DockerRootDir}}' 2>/dev/null) || engine_folder=
  [ -n "$engine_folder" ] && [ -d "$engine_folder" ] || return 0
  engine_need=4194304
  ! docker image inspect gatehouse-turn:dev >/dev/null 2>&1 || engine_need=524288
  engine_free=$(df -Pk "$engine_folder" 2>/dev/null | awk 'NR == 2 { print $4 }')
  [ -z "$engine_free" ] || [ "$engine_free" -ge "$engine_need" ] ||
    fail 4 host-not-ready "$engine_folder has $((engine_free / 1024)) MiB free, and $((engine_need / 1024)) MiB are needed" \
      "free some space there (docker system df shows what takes it)"
}
