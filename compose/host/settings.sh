# shellcheck shell=sh disable=SC2034
# Which settings hold: the environment first, then .env at the root, as docker compose reads them.
# .env is data here and is never executed.

# Where the host's own files are; a test gives a folder of its own.
HOST_FILES=${GATEHOUSE_HOST_FILES:-}
GATEHOUSE_STATE=$GATEHOUSE_ROOT/.gatehouse

# What the scripts themselves act on. All other settings of the services go to them through compose, which reads .env too.
SETTINGS="AGENT_PORT GATEHOUSE_AGENT MODEL_API_KEY_FILE MODEL_CA_FILE TUNNEL_TOKEN_FILE EXTRA_CA_CERTS BASE
  COMPOSE_PROJECT_NAME DOCKER_HOST GROUNDING_DIR"

# The overrides of an instance's files (docs/reference/settings.md), for the commands that read those files here. `up` leaves
# them to compose.
OVERRIDES="PUBLIC_AGENT_URL AGENT_HOST CLAUDE_MODEL CLAUDE_BINARY ENVIRONMENT CORS_ALLOWED_ORIGINS"

# settings_file: the lines of .env as NAME=value, without quotes, comments and `export`; the last one of a name counts.
settings_file() {
  [ -r "$GATEHOUSE_ROOT/.env" ] || return 0
  awk '
    { sub(/\r$/, "") }
    match($0, /^[ \t]*(export[ \t]+)?[A-Za-z_][A-Za-z0-9_]*[ \t]*=[ \t]*/) {
      name = substr($0, 1, RLENGTH); value = substr($0, RLENGTH + 1)
      sub(/^[ \t]*(export[ \t]+)?/, "", name); sub(/[ \t]*=[ \t]*$/, "", name)
      quote = substr(value, 1, 1)
      rest = substr(value, 2)
      if (quote == "\"" && match(rest, /"[ \t]*(#.*)?$/)) value = substr(rest, 1, RSTART - 1)
      else if (quote == "\047" && match(rest, /\047[ \t]*(#.*)?$/)) value = substr(rest, 1, RSTART - 1)
      else { sub(/^#.*/, "", value); sub(/[ \t]+#.*/, "", value); sub(/[ \t]+$/, "", value) }
      print name "=" value
    }' "$GATEHOUSE_ROOT/.env"
}

# settings_find NAME: put what .env gives for it into settings_value; fails when there is no such line.
settings_find() {
  case "$SETTINGS_FILE" in
    *"
$1="*) ;;
    *) return 1 ;;
  esac
  settings_value=${SETTINGS_FILE##*"
$1="}
  settings_value=${settings_value%%"
"*}
}

# settings_line NAME: print it.
settings_line() { settings_find "$1" && printf '%s\n' "$settings_value"; }

# settings_take NAME…: export those that are given, in the environment or in .env.
settings_take() {
  for settings_name in "$@"; do
    settings_folder=$PWD
    eval "settings_given=\${$settings_name+given}"
    if [ -z "$settings_given" ]; then
      settings_find "$settings_name" || continue
      settings_folder=$GATEHOUSE_ROOT
      eval "$settings_name=\$settings_value"
    fi
    case "$settings_name" in *_FILE | EXTRA_CA_CERTS) settings_path "$settings_name" "$settings_folder" ;; esac
    export "${settings_name?}"
  done
}

# settings_path NAME FOLDER: make the path in NAME absolute.
settings_path() {
  eval "settings_value=\${$1-}"
  case "$settings_value" in
    '' | /*) ;;
    *) eval "$1=\$2/\$settings_value" ;;
  esac
}

settings_load() {
  # With a line feed at both ends, every line can be found by its name.
  SETTINGS_FILE="
$(settings_file)
"
  # shellcheck disable=SC2086 # a list of names
  settings_take $SETTINGS
  if [ -z "${EXTRA_CA_CERTS-}" ]; then
    for settings_bundle in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
      [ -s "$settings_bundle" ] || continue
      EXTRA_CA_CERTS=$settings_bundle
      export EXTRA_CA_CERTS
      break
    done
  fi
  PROJECT=${COMPOSE_PROJECT_NAME:-gatehouse}
  PORT=${AGENT_PORT:-8011}
  AGENT=${GATEHOUSE_AGENT:-ada}
  # What `up` makes for this stack alone: another stack of the same checkout has a folder of its own.
  STACK_FOLDER=$GATEHOUSE_STATE/stacks/$PROJECT
  STACK_GENERATED=$STACK_FOLDER/compose.generated.yaml
  STACK_SECRETS=$STACK_FOLDER/secrets
  [ -n "$HOST_FILES" ] || PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
}

# Compose's own rule; and the name becomes a folder's, which `down` deletes.
project_valid() {
  case "$PROJECT" in
    [!a-z0-9]* | *[!a-z0-9_-]*) fail 2 usage "COMPOSE_PROJECT_NAME is not a name: $PROJECT" "lower-case letters, digits, - and _, not beginning with - or _" ;;
  esac
}

port_valid() {
  case "$PORT" in
    '' | *[!0-9]* | ??????*) fail 2 usage "AGENT_PORT is not a port: $PORT" "give a number from 1 to 65535" ;;
  esac
  [ "$PORT" -ge 1 ] && [ "$PORT" -le 65535 ] || fail 2 usage "AGENT_PORT is not a port: $PORT" "give a number from 1 to 65535"
}

# The files are looked at before anything is set up: a live stack must never come up as the demo by accident.
files_readable() {
  for file_name in MODEL_API_KEY_FILE TUNNEL_TOKEN_FILE MODEL_CA_FILE; do
    eval "file_path=\${$file_name-}"
    [ -n "$file_path" ] || continue
    [ -e "$file_path" ] || file_unusable "$file_name=$file_path: there is no such file" "give a file, or unset $file_name"
    [ ! -d "$file_path" ] || file_unusable "$file_name=$file_path is a folder" "give a file, or unset $file_name"
    (: <"$file_path") 2>/dev/null ||
      file_unusable "$file_name=$file_path cannot be read by $(id -un)" "chown or chmod it for this user, or run as root"
    [ ! -f "$file_path" ] || [ -s "$file_path" ] ||
      file_unusable "$file_name=$file_path is empty" "save the content into it, or unset $file_name"
  done
}

# Certificates are no secret, and what the model proxy says of a file of theirs that it cannot use is the same.
file_unusable() {
  case "$file_name" in
    MODEL_CA_FILE) fail 4 host-not-ready "$1" "$2" ;;
    *) fail 7 secret-unusable "$1" "$2" ;;
  esac
}

instance_present() {
  case "$AGENT" in
    *[!A-Za-z0-9_-]*) fail 2 usage "GATEHOUSE_AGENT is not a name: $AGENT" "letters, digits, - and _" ;;
  esac
  [ -r "$GATEHOUSE_ROOT/instances/$AGENT/agent.yaml" ] ||
    fail 3 config-invalid "instances/$AGENT/agent.yaml: there is no such file" "copy instances/_template, or set GATEHOUSE_AGENT"
}
