# shellcheck shell=sh
# The stack on this host: what compose cannot know by itself, the start with a verdict, and taking it down.

# compose.yaml and, once made, what this host adds to it.
stack_compose() {
  [ ! -r "$STACK_GENERATED" ] || set -- --file "$STACK_GENERATED" "$@"
  docker compose --project-directory "$GATEHOUSE_ROOT" --project-name "$PROJECT" --file "$GATEHOUSE_ROOT/compose.yaml" "$@"
}

# stack_ids [FILTER…]: the stack's containers, running or not.
stack_ids() { docker ps --all --quiet --filter "label=com.docker.compose.project=$PROJECT" "$@"; }

# stack_file NAME: what .env sets NAME to, or nothing.
stack_file() { settings_file | sed -n "s/^$1=//p" | tail -n 1; }

# --- before starting -------------------------------------------------------------------------------------
# A name that a run without a sandbox alone understands is refused here: the services would refuse it too, one by one.
binary_absent() {
  binary_given=${CLAUDE_BINARY-$(stack_file CLAUDE_BINARY)}
  [ -z "$binary_given" ] ||
    fail 2 usage "CLAUDE_BINARY=$binary_given has no meaning here: each turn runs the CLI of its own image" \
      "unset it, in the environment and in .env; or run without a sandbox: ./gatehouse turn $AGENT --sandbox none"
}

# port_read: the number in the line `port: NUMBER` of the instance's file, or nothing. It is wanted before there is a program
# that understands YAML; stack_check compares it with what the loader finds.
port_read() {
  sed -n 's/^port:[[:space:]]\{1,\}\([1-9][0-9]\{0,4\}\)[[:space:]]*$/\1/p
    s/^port:[[:space:]]\{1,\}\([1-9][0-9]\{0,4\}\)[[:space:]]\{1,\}#.*$/\1/p' "$GATEHOUSE_ROOT/instances/$AGENT/agent.yaml" 2>/dev/null | tail -n 1
}

# What can be found of mistakes in the instance before the engine is asked and images are built, where a Python that can read it
# is made already. What else ends this check ends here: the one in the spawner's image says it all.
instance_checked() {
  ! cli_current || (
    # shellcheck disable=SC2086 # a list of names
    settings_take $OVERRIDES
    cd "$GATEHOUSE_ROOT"
    instance_code=0
    instance_said=$("$CLI_PYTHON" -I -X utf8 -m runtime.agents.check --root "$GATEHOUSE_ROOT" "$AGENT" 2>&1 >/dev/null) || instance_code=$?
    [ "$instance_code" = 3 ] || exit 0
    printf '%s\n' "$instance_said" >&2
    exit 3
  ) || exit
}

# Without AGENT_PORT the port is the instance's own.
port_find() {
  PORT_READ=
  [ -z "${AGENT_PORT-}" ] || return 0
  PORT_READ=$(port_read)
  [ -n "$PORT_READ" ] || PORT_READ=8011
  [ "$PORT_READ" -le 65535 ] ||
    fail 3 config-invalid "instances/$AGENT/agent.yaml: port: there is no port $PORT_READ" "give a number from 1 to 65535, or leave it out for 8011"
  PORT=$PORT_READ
  AGENT_PORT=$PORT
  export AGENT_PORT
}

# Is the port free, or ours? Asked of the kernel, because no tool for it is on a bare host.
port_free() {
  port_hex=$(printf '%04X' "$PORT")
  port_held=$(cat "$HOST_FILES/proc/net/tcp" "$HOST_FILES/proc/net/tcp6" 2>/dev/null |
    awk -v port="$port_hex" '$4 == "0A" { split($2, a, ":"); if (a[2] == port && (a[1] ~ /^0*$/ || a[1] == "0100007F" || a[1] == "0000000000000000FFFF00000100007F")) print a[1] }')
  [ -n "$port_held" ] || return 0
  [ -z "$(stack_ids --filter "publish=$PORT" --filter status=running)" ] || return 0
  fail 4 port-in-use "port $PORT of 127.0.0.1 is in use" "stop what holds it, or set AGENT_PORT"
}

# One project name is one stack on a host: another checkout's would be taken over.
stack_here() {
  stack_other=$(docker ps --filter "label=com.docker.compose.project=$PROJECT" --format '{{.Label "com.docker.compose.project.working_dir"}}' |
    sort -u | grep -vxF "$GATEHOUSE_ROOT" | head -n 1) || stack_other=
  [ -z "$stack_other" ] ||
    fail 4 host-not-ready "a stack named $PROJECT already runs from $stack_other" "./gatehouse down there, or set COMPOSE_PROJECT_NAME and AGENT_PORT here"
}

# --- secrets ---------------------------------------------------------------------------------------------
# A file secret of compose is a bind mount: the copy belongs to the service's uid, and to it alone. The owner is set in a
# container, so that it works for a user who is no root but may use the engine.
secrets_place() {
  mkdir -p "$STACK_SECRETS"
  chmod 0700 "$STACK_SECRETS"
  secrets_copy MODEL_API_KEY_FILE model_api_key 10203
  secrets_copy MODEL_CA_FILE model_ca 10203
  secrets_copy TUNNEL_TOKEN_FILE tunnel_token 10206
}

secrets_copy() {
  eval "secrets_from=\${$1-}"
  [ -n "$secrets_from" ] || rm -f "$STACK_SECRETS/$2"
  [ -n "$secrets_from" ] || return 0
  [ "$secrets_from" != "$STACK_SECRETS/$2" ] || return 0
  # shellcheck disable=SC2016 # for the shell in the container
  docker run --rm --interactive --network none --read-only --cap-drop ALL --cap-add CHOWN --cap-add DAC_OVERRIDE \
    --security-opt no-new-privileges --user 0:0 --entrypoint sh --volume "$STACK_SECRETS:/secrets" gatehouse-modelproxy:dev \
    -c 'set -e; umask 077; rm -f "/secrets/$1.new"; cat >"/secrets/$1.new"; chmod 0400 "/secrets/$1.new"
        chown "$2:10101" "/secrets/$1.new"; mv -f "/secrets/$1.new" "/secrets/$1"' - "$2" "$3" <"$secrets_from" ||
    fail 7 secret-unusable "$1 could not be copied for the service that reads it" "is $STACK_SECRETS writable?"
  eval "export $1=\$STACK_SECRETS/\$2"
}

# --- what depends on the host ------------------------------------------------------------------------------
# Folders outside instances/ that the agent reads, the home that its `~` means, and the group of the engine's socket.
stack_generate() {
  stack_settings_read
  stack_mounts=$(docker run --rm --network none --read-only --cap-drop ALL --security-opt no-new-privileges --user 10202:10101 \
    --env GROUNDING_DIR --env HOME="${HOME:-/}" --volume "$GATEHOUSE_ROOT/instances:$GATEHOUSE_ROOT/instances:ro" \
    --entrypoint python gatehouse-spawner:dev -m runtime.agents.sources --root "$GATEHOUSE_ROOT" --mounts "$AGENT") || {
    stack_code=$?
    [ "$stack_code" != 3 ] || exit 3 # the loader has said each mistake with its place and mend
    fail 1 unexpected "the folders that instances/$AGENT reads could not be listed (exit $stack_code)" "see the lines above"
  }
  stack_check
  stack_settings_said
  port_agreed
  mkdir -p "$STACK_FOLDER"
  stack_overlay >"$STACK_GENERATED.new" || exit
  mv "$STACK_GENERATED.new" "$STACK_GENERATED"
}

# All that a service would refuse of its settings, key and certificates, found before a stack that runs is touched: each looks
# at them in its own image with the environment that compose would give it, and in parallel with what else is to be found out.
# Compose doubles each $ of what it prints.
# shellcheck disable=SC2016 # a program of Python
STACK_ENVIRONMENT='
import json, os, sys
config, *files = sys.stdin.buffer.read().split(b"\0", 2)
given = json.loads(config)["services"][sys.argv[1]].get("environment") or {}
os.environ.update({name: value.replace("$$", "$") for name, value in given.items() if value is not None})
'
STACK_ASKER=$STACK_ENVIRONMENT'
import runpy
for name, content in zip(("model_ca", "model_api_key"), files):
    with open(os.open("/run/secrets/" + name, os.O_CREAT | os.O_WRONLY, 0o400), "wb") as file:
        file.write(content)
service, sys.argv[1] = sys.argv[1], "--check"
runpy.run_module("runtime." + service, run_name="__main__", alter_sys=True)
'

stack_settings_read() {
  STACK_CONFIG=$(docker compose --project-directory "$GATEHOUSE_ROOT" --project-name "$PROJECT" --file "$GATEHOUSE_ROOT/compose.yaml" \
    config --format json 2>"$GATEHOUSE_STATE/config.log") ||
    fail 2 usage "docker compose cannot read the settings: $(last_line "$GATEHOUSE_STATE/config.log")" "mend .env or the environment"
  rm -f "$GATEHOUSE_STATE"/settings.*
  stack_settings_of front 10201 </dev/null &
  stack_settings_pids=$!
  stack_settings_of spawner 10202 </dev/null &
  stack_settings_pids="$stack_settings_pids $!"
  # The model proxy's ledger knows whether this stack has answered from a real model.
  set --
  ! docker volume inspect "${PROJECT}_state-model" >/dev/null 2>&1 || set -- --volume "${PROJECT}_state-model:/var/lib/gatehouse/state"
  {
    printf '\000'
    # A pipe can be read once, and that is when its content is copied for the service.
    [ ! -f "${MODEL_CA_FILE-}" ] || cat "$MODEL_CA_FILE"
    printf '\000'
    if [ -f "${MODEL_API_KEY_FILE-}" ]; then cat "$MODEL_API_KEY_FILE"; elif [ -n "${MODEL_API_KEY_FILE-}" ]; then printf 'not-read-yet'; fi
  } | stack_settings_of modelproxy 10203 "$@" &
  stack_settings_pids="$stack_settings_pids $!"
}

# stack_settings_of SERVICE UID ARGUMENT…: the certificates and the key come on stdin, each after a NUL.
stack_settings_of() {
  stack_service=$1
  stack_uid=$2
  shift 2
  stack_code=0
  { printf '%s\n' "$STACK_CONFIG"; cat; } |
    docker run --rm -i --network none --read-only --cap-drop ALL --security-opt no-new-privileges --user "$stack_uid:10101" \
      --tmpfs /run/secrets:size=1m,mode=1777,noexec,nosuid,nodev "$@" \
      --entrypoint python "gatehouse-$stack_service:dev" -c "$STACK_ASKER" "$stack_service" >"$GATEHOUSE_STATE/settings.$stack_service" 2>&1 9>&- ||
    stack_code=$?
  echo "$stack_code" >"$GATEHOUSE_STATE/settings.$stack_service.code"
}

# Waits for all, and says what they found. Their codes are in files for the reason that stack_compose_up gives.
stack_settings_said() {
  # shellcheck disable=SC2086 # a list of ids
  wait $stack_settings_pids || :
  stack_worst=0
  for stack_service in front spawner modelproxy; do
    stack_code=$(cat "$GATEHOUSE_STATE/settings.$stack_service.code" 2>/dev/null) || stack_code=1
    [ "$stack_code" != 0 ] || continue
    # The service's own places mean nothing to who set the variable.
    sed 's|/run/secrets/model_api_key|MODEL_API_KEY_FILE|; s|/run/secrets/model_ca|MODEL_CA_FILE|' \
      "$GATEHOUSE_STATE/settings.$stack_service" | grep '^gatehouse: ' >&2 ||
      fail 1 unexpected "the settings of $stack_service could not be checked (exit $stack_code): $(last_line "$GATEHOUSE_STATE/settings.$stack_service")" \
        "see .gatehouse/settings.$stack_service"
    stack_worst=$stack_code
  done
  [ "$stack_worst" = 0 ] || exit "$stack_worst"
}

# All that the loader would refuse, found before a stack that runs is touched.
# STACK_PORT is the port that the loader finds in the instance's files.
# shellcheck disable=SC2016 # a program of Python
STACK_CHECKER=$STACK_ENVIRONMENT'
from pathlib import Path
from runtime.agents.check import main
from runtime.agents.instance import load_instance
if code := main(sys.argv[2:]):
    raise SystemExit(code)
own = {name: value for name, value in os.environ.items() if name != "AGENT_PORT"}
print(load_instance(Path(sys.argv[3]), sys.argv[4], own, check_sources=False).network.port)
'

stack_check() {
  set --
  while IFS='	' read -r stack_source stack_target; do
    [ -z "$stack_source" ] || [ ! -d "$stack_source" ] || set -- "$@" --volume "$stack_source:$stack_source:ro"
  done <<MOUNTS
$stack_mounts
MOUNTS
  stack_said=$(printf '%s\n' "$STACK_CONFIG" | docker run --rm -i --network none --read-only --cap-drop ALL \
    --security-opt no-new-privileges --user 10202:10101 \
    --env HOME="${HOME:-/}" --volume "$GATEHOUSE_ROOT/instances:$GATEHOUSE_ROOT/instances:ro" "$@" \
    --entrypoint python gatehouse-spawner:dev -c "$STACK_CHECKER" spawner --root "$GATEHOUSE_ROOT" "$AGENT") || {
    stack_code=$?
    [ "$stack_code" != 3 ] || exit 3 # each mistake has been said with its place and mend
    fail 1 unexpected "instances/$AGENT could not be checked (exit $stack_code)" "see the lines above"
  }
  STACK_PORT=$(printf '%s\n' "$stack_said" | tail -n 1)
}

# The port that is published is the port on the card: what was read without YAML must be what YAML says.
port_agreed() {
  [ -z "$PORT_READ" ] || [ "$PORT_READ" = "$STACK_PORT" ] ||
    fail 3 config-invalid "instances/$AGENT/agent.yaml: port: is $STACK_PORT, but only a line like \"port: $STACK_PORT\" is understood before the start, and $PORT_READ was taken" \
      "write the port on such a line, at its beginning, or set AGENT_PORT"
}

# stack_overlay: the generated file, from stack_mounts (SOURCE, a tab, TARGET, one a line).
# Compose makes a container anew when its own lines change, and the content of a mounted file is not among them: so the
# labels say which files a service has read. The key's is made of where and when the file was written, not of the key.
stack_overlay() {
  stack_home=$(stack_quote "${HOME:-/}")
  stack_files=$(stack_fingerprint) || exit
  # shellcheck disable=SC2012 # stat(1) is not in POSIX
  stack_key=$(ls -lniL "${MODEL_API_KEY_FILE:-/dev/null}" "${MODEL_CA_FILE:-/dev/null}" | cksum | tr ' ' '-')
  printf '%s\n' "# Made by ./gatehouse up for this host, anew at every start." "services:" \
    "  modelproxy:" "    labels: {gatehouse.read: \"$stack_key\"}" \
    "  front:" "    labels: {gatehouse.read: \"$stack_files\"}" "    environment: {HOME: $stack_home}" \
    "  spawner:" "    labels: {gatehouse.read: \"$stack_files\"}" "    environment: {HOME: $stack_home}"
  # With user namespaces the group has another number inside: there the spawner stays 0:0, as compose/stack.yaml has it.
  if ! docker info --format '{{.SecurityOptions}}' | grep -q -e rootless -e userns; then
    # shellcheck disable=SC2012 # stat(1) is not in POSIX; this is one socket
    printf '    user: "10202:10101"\n    group_add: ["%s"]\n' "$(ls -lnL "$DOCKER_SOCKET" | awk '{ print $4 }')"
  fi
  [ -n "$stack_mounts" ] || return 0
  printf '    volumes:\n'
  printf '%s\n' "$stack_mounts" | while IFS='	' read -r stack_source stack_target; do
    printf '      - {type: bind, source: %s, target: %s, read_only: true}\n' "$(stack_quote "$stack_source")" "$(stack_quote "$stack_target")"
  done
}

# stack_fingerprint: one word that changes when a file changes that the agent is made of.
stack_fingerprint() {
  printf '%s\n' "$stack_mounts" | while IFS='	' read -r stack_source stack_target; do
    [ -z "$stack_source" ] || [ -d "$stack_source" ] ||
      fail 3 config-invalid "instances/$AGENT/agent.yaml: $stack_source: there is no such folder on this host" "mend grounding_dir, extra_read_dirs or GROUNDING_DIR"
  done || exit
  {
    printf '%s\n' "$GATEHOUSE_ROOT/instances/$AGENT"
    printf '%s\n' "$stack_mounts" | cut -f 1
  } | while IFS= read -r stack_source; do
    [ -z "$stack_source" ] || find "$stack_source" -type f -exec cksum {} + 2>/dev/null || :
  done | sort | cksum | tr ' ' '-'
}

# stack_quote TEXT: as a YAML string in which compose replaces nothing.
stack_quote() { printf "'%s'" "$(printf '%s\n' "$1" | sed "s/'/''/g; s/[$]/\$\$/g")"; }

# --- up ----------------------------------------------------------------------------------------------------
stack_up() {
  stack_generate
  secrets_place
  [ -z "${TUNNEL_TOKEN_FILE-}" ] || export COMPOSE_PROFILES=tunnel
  say "starting the stack $PROJECT (log: .gatehouse/up.log)"
  on_stop stack_abandon
  STACK_STARTING=yes
  STACK_EARLIER=$(stack_ids)
  : >"$GATEHOUSE_STATE/up.log"
  rm -f "$GATEHOUSE_STATE/up.code" "$GATEHOUSE_STATE/up.pid"
  stack_compose_up &
  stack_start=$!
  stack_left=240
  while :; do
    stack_look
    [ -z "$STACK_BROKEN" ] || stack_broken
    if [ -e "$GATEHOUSE_STATE/up.code" ]; then
      [ "$(cat "$GATEHOUSE_STATE/up.code")" = 0 ] || { stack_look; stack_broken; }
      [ "$STACK_PENDING" -gt 0 ] || break
    fi
    stack_left=$((stack_left - 1))
    [ "$stack_left" -gt 0 ] || stack_broken
    sleep 0.5
  done
  stack_ready
  STACK_STARTING=
  stack_say
}

# In the background, so that a service that fails is seen at once. Its exit code goes to a file, and not to wait(1): a
# shell that runs other commands meanwhile may have lost it. A session of its own, so that all of it can be ended.
stack_compose_up() {
  (
    [ ! -r "$STACK_GENERATED" ] || set -- --file "$STACK_GENERATED"
    exec setsid docker compose --project-directory "$GATEHOUSE_ROOT" --project-name "$PROJECT" --file "$GATEHOUSE_ROOT/compose.yaml" "$@" \
      up --detach --no-build --remove-orphans
  ) >>"$GATEHOUSE_STATE/up.log" 2>&1 9>&- &
  stack_pid=$!
  echo "$stack_pid" >"$GATEHOUSE_STATE/up.pid"
  stack_code=0
  wait "$stack_pid" || stack_code=$?
  echo "$stack_code" >"$GATEHOUSE_STATE/up.code.new"
  mv "$GATEHOUSE_STATE/up.code.new" "$GATEHOUSE_STATE/up.code"
}

# Looks at every container: STACK_BROKEN is `service code` of one that failed, STACK_PENDING how many are not healthy yet.
# While compose is at work, those of an earlier start do not count: it stops some, to make them anew.
stack_look() {
  STACK_BROKEN=
  STACK_PENDING=0
  stack_containers=$(stack_ids) || stack_containers=
  if [ -n "$STACK_EARLIER" ] && [ ! -e "$GATEHOUSE_STATE/up.code" ]; then
    stack_containers=$(printf '%s\n' "$stack_containers" | grep -vxF "$STACK_EARLIER") || stack_containers=
  fi
  # shellcheck disable=SC2086 # a list of ids
  stack_states=$([ -z "$stack_containers" ] || docker inspect --format \
    '{{index .Config.Labels "com.docker.compose.service"}} {{.State.Status}} {{.State.ExitCode}} {{.RestartCount}} {{if .State.Health}}{{.State.Health.Status}}{{else}}none{{end}}' \
    $stack_containers 2>/dev/null) || stack_states=
  [ -n "$stack_states" ] || return 0
  while read -r stack_service stack_status stack_code stack_restarts stack_health; do
    case "$stack_service:$stack_status:$stack_code:$stack_health" in
      turn:exited:0:*) ;;
      *:running:*:healthy) ;;
      tunnel:running:*) ;;
      *:exited:* | *:dead:* | *:restarting:* | *:unhealthy) STACK_BROKEN="$stack_service $stack_code" ;;
      *)
        STACK_PENDING=$((STACK_PENDING + 1))
        [ "$stack_restarts" = 0 ] || STACK_BROKEN="$stack_service $stack_code"
        ;;
    esac
  done <<STATES
$stack_states
STATES
}

# Say which service failed and why, with the exit code that the service itself gave.
stack_broken() {
  if [ -z "$STACK_BROKEN" ]; then
    stack_why=$(last_line "$GATEHOUSE_STATE/up.log")
    case "$stack_why" in
      *'already allocated'* | *'address already in use'*) fail 4 port-in-use "port $PORT of 127.0.0.1 is in use" "stop what holds it, or set AGENT_PORT" ;;
    esac
    fail 8 service-unreachable "the stack did not become healthy: $stack_why" "see .gatehouse/up.log"
  fi
  stack_service=${STACK_BROKEN% *}
  stack_code=${STACK_BROKEN#* }
  stack_id=$(stack_ids --filter "label=com.docker.compose.service=$stack_service" | head -n 1)
  # Of one that was started again the state has no exit code; the engine's events have. They end with the next second.
  [ "$stack_code" != 0 ] || stack_code=$(docker events --since 10m --until $(($(date +%s) + 1)) --filter "container=$stack_id" \
    --filter event=die --format '{{.Actor.Attributes.exitCode}}' | tail -n 1)
  docker logs --tail 60 "$stack_id" >"$GATEHOUSE_STATE/$stack_service.log" 2>&1 || :
  # A service's own sentence begins as ours do, or is a line of JSON.
  stack_last=$(last_line "$GATEHOUSE_STATE/$stack_service.log" | sed 's/^gatehouse: [a-z-]*: //')
  stack_why=$(stack_field reason)
  stack_mend=$(stack_field mend)
  stack_why="$stack_service: ${stack_why:-$stack_last}"
  stack_mend="${stack_mend:+$stack_mend; }see .gatehouse/$stack_service.log"
  case "$stack_code" in
    2) fail 2 usage "$stack_why" "$stack_mend" ;;
    3) fail 3 config-invalid "$stack_why" "$stack_mend" ;;
    4) fail 4 host-not-ready "$stack_why" "$stack_mend" ;;
    5) fail 5 image-missing "$stack_why" "$stack_mend" ;;
    6) fail 6 control-failed "$stack_why" "$stack_mend" ;;
    7) fail 7 secret-unusable "$stack_why" "$stack_mend" ;;
    *) fail 8 service-unreachable "$stack_why" "$stack_mend" ;;
  esac
}

# stack_field NAME: a text of stack_last, where that is a line of JSON; nothing where it is not.
stack_field() {
  printf '%s\n' "$stack_last" |
    sed -n "s/^{.*\"$1\": \"\(\([^\"\\\\]\|\\\\.\)*\)\".*\$/\1/p" | sed 's/\\n/ | /g; s/\\\(.\)/\1/g'
}

# A start that failed or was interrupted leaves nothing running.
stack_abandon() {
  [ -n "${STACK_STARTING-}" ] || return 0
  STACK_STARTING=
  if [ -s "$GATEHOUSE_STATE/up.pid" ] && [ ! -e "$GATEHOUSE_STATE/up.code" ]; then
    kill -s TERM -- "-$(cat "$GATEHOUSE_STATE/up.pid")" 2>/dev/null
    wait "$stack_start" 2>/dev/null
  fi
  if [ -n "$STACK_EARLIER" ]; then
    say "taking down what was started; the stack that ran before is down too"
  else
    say "taking down what was started"
  fi
  stack_remove no && rm -rf "$STACK_FOLDER"
}

# stack_ask PATH: what the stack answers there, asked from inside the ingress, because a bare host has no HTTP client.
stack_ask() {
  stack_compose exec -T ingress python -c \
    'import sys, urllib.request as r; sys.stdout.write(r.urlopen("http://127.0.0.1:8011" + sys.argv[1], timeout=5).read().decode())' "$1" 2>/dev/null
}

stack_ready() {
  stack_left=60
  until STACK_WORDS=$(stack_ask /ready); do
    stack_left=$((stack_left - 1))
    [ "$stack_left" -gt 0 ] || fail 8 service-unreachable "the stack runs but is not ready to answer" "see docker compose -p $PROJECT logs front spawner"
    sleep 0.5
  done
}

# What another command of this checkout must be given to mean this stack: what is set for this command alone.
stack_prefix() {
  for stack_name in COMPOSE_PROJECT_NAME GATEHOUSE_AGENT AGENT_PORT; do
    case "$stack_name" in
      COMPOSE_PROJECT_NAME) stack_this=$PROJECT stack_else=gatehouse ;;
      GATEHOUSE_AGENT) stack_this=$AGENT stack_else=ada ;;
      AGENT_PORT) stack_this=$PORT stack_else=$(port_read) ;;
    esac
    stack_plain=$(stack_file "$stack_name")
    [ "$stack_this" = "${stack_plain:-${stack_else:-8011}}" ] || printf '%s=%s ' "$stack_name" "$stack_this"
  done
}

stack_say() {
  case "$(printf '%s' "$STACK_WORDS" | tr -d ' \n')" in
    *'"demo":true'*) stack_model="demo (offline, quotes the grounding; give MODEL_API_KEY_FILE for a live one)" ;;
    *) stack_model="live" ;;
  esac
  stack_example=$(stack_compose exec -T ingress python - <"$GATEHOUSE_HOST/example.py") ||
    fail 8 service-unreachable "the stack runs but does not show its card" "see docker compose -p $PROJECT logs front ingress"
  stack_question=$(printf '%s\n' "$stack_example" | sed -n 1p)
  stack_body=$(printf '%s\n' "$stack_example" | sed -n 2p)
  stack_before=$(stack_prefix)
  cat <<WORDS
URL:    http://127.0.0.1:$PORT/
Agent:  $AGENT
Model:  $stack_model
Ask it:

${stack_before}./gatehouse ask $stack_question

or, without anything of ours:

curl -s http://127.0.0.1:$PORT/ -H 'Content-Type: application/json' -d '$stack_body'

What it is doing: ${stack_before}./gatehouse status
WORDS
}

# --- down --------------------------------------------------------------------------------------------------
stack_down_command() {
  if ! command -v docker >/dev/null 2>&1; then
    say "no docker client here: nothing to take down"
    return 0
  fi
  engine_socket
  engine_answers || fail 4 engine-unavailable "no engine answers at $DOCKER_SOCKET, so nothing can be taken down" "start it, and run this again"
  say "taking down the stack $PROJECT"
  stack_remove "$1" || fail 1 unexpected "not everything could be removed" "see .gatehouse/down.log"
  rm -rf "$STACK_FOLDER"
}

# stack_remove ALL: containers, networks and socket volumes by their labels, so that it works whatever state they are in;
# with ALL=yes state and images too. Each container has the time to end that its `stop_grace_period` gives it.
stack_remove() {
  stack_failed=0
  : >"$GATEHOUSE_STATE/down.log"
  # The front first, so that whoever waits for an answer gets it through an ingress that is still whole.
  stack_front=$(docker ps --quiet --filter "label=com.docker.compose.project=$PROJECT" --filter label=com.docker.compose.service=front)
  # shellcheck disable=SC2086 # a list of ids
  [ -z "$stack_front" ] || logged down docker stop $stack_front || stack_failed=1
  (cd / && logged down docker compose --project-name "$PROJECT" down --remove-orphans) || stack_failed=1
  # Turns whose spawner had no time to end them: they mount this stack's packs.
  stack_turns=$(docker ps --all --quiet --filter label=gatehouse.turn --filter "volume=${PROJECT}_packs")
  # shellcheck disable=SC2086 # a list of ids
  [ -z "$stack_turns" ] || logged down docker rm --force $stack_turns || stack_failed=1
  for stack_volume in $(docker volume ls --quiet --filter "label=com.docker.compose.project=$PROJECT"); do
    case "$1:${stack_volume#"${PROJECT}_"}" in
      no:packs | no:state-*) ;;
      *) logged down docker volume rm "$stack_volume" || stack_failed=1 ;;
    esac
  done
  [ "$1" != yes ] || stack_remove_images
  return "$stack_failed"
}

# The images by their names, but for those of which a stack has a container, running or not. A later build may have taken the
# name from the image of that container: its spawner looks for the name when it starts, so the engine's own refusal to remove
# an image in use is not enough.
stack_remove_images() {
  stack_containers=$(docker ps --all --quiet --filter label=com.docker.compose.project)
  # shellcheck disable=SC2086 # a list of ids
  stack_uses=$([ -z "$stack_containers" ] || docker inspect \
    --format '{{.Config.Image}} {{index .Config.Labels "com.docker.compose.project"}}' $stack_containers 2>/dev/null) || :
  for stack_image in $IMAGES; do
    docker image inspect "$stack_image" >/dev/null 2>&1 || continue
    stack_user=$(printf '%s\n' "$stack_uses" | sed -n "s/^$stack_image //p" | head -n 1)
    if [ -n "$stack_user" ]; then
      say "kept $stack_image, which the stack $stack_user uses"
    else
      logged down docker rmi "$stack_image" || say "kept $stack_image, which another stack uses"
    fi
  done
}
