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

# What docker compose itself takes from .env, where it has an effect on what ./gatehouse runs.
COMPOSES="COMPOSE_PROFILES COMPOSE_PARALLEL_LIMIT COMPOSE_ANSI COMPOSE_PROGRESS"

# settings_file: the lines of .env as NAME=value, without quotes, comments and `export`; the last one of a name counts.
settings_file() {
  [ -r "$GATEHOUSE_ROOT/.env" ] || return 0
  awk '
    NR == 1 { sub(/^\357\273\277/, "") }
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
    # No shell has seen a line of .env, and people write there what they would type.
    "~" | [~]/*) eval "$1=\${HOME:-}\${settings_value#?}" ;;
    *) eval "$1=\$2/\$settings_value" ;;
  esac
}

# settings_names: every name that has an effect in .env. compose/stack.yaml passes each setting of a service on, or puts it in
# somewhere, so that file is the list.
settings_names() {
  awk '
    /^ *#/ { next }
    match($0, /^ +[A-Z][A-Z_]*:/) { name = substr($0, 1, RLENGTH - 1); sub(/^ +/, "", name); print name }
    { while (match($0, /[$][{][A-Za-z][A-Za-z_]*/)) { print substr($0, RSTART + 2, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH) } }
  ' "$GATEHOUSE_ROOT/compose/stack.yaml"
  # shellcheck disable=SC2086 # lists of names
  printf '%s\n' $SETTINGS $OVERRIDES $COMPOSES
}

# distance(one, two): how many letters were left out, added, changed or exchanged with the next.
SETTINGS_DISTANCE='
  function distance(one, two,   a, b, d, i, j, least) {
    a = length(one); b = length(two)
    for (i = 0; i <= a; i++) d[i, 0] = i
    for (j = 0; j <= b; j++) d[0, j] = j
    for (i = 1; i <= a; i++) for (j = 1; j <= b; j++) {
      least = d[i - 1, j - 1] + (substr(one, i, 1) != substr(two, j, 1))
      if (d[i - 1, j] + 1 < least) least = d[i - 1, j] + 1
      if (d[i, j - 1] + 1 < least) least = d[i, j - 1] + 1
      if (i > 1 && j > 1 && substr(one, i - 1, 2) == substr(two, j, 1) substr(two, j - 1, 1) && d[i - 2, j - 2] + 1 < least)
        least = d[i - 2, j - 2] + 1
      d[i, j] = least
    }
    return d[a, b]
  }'

# nearest WORD FARTHEST: the line of stdin that is nearest to WORD, or nothing.
nearest() {
  awk -v word="$1" -v farthest="$2" "$SETTINGS_DISTANCE"'
    BEGIN { best = farthest + 1 }
    { far = distance(toupper(word), toupper($0)); if (far < best) { best = far; found = $0 } }
    END { if (best <= farthest) print found }'
}

# settings_lines: .env line by line, as `name LINE NAME` or `wrong LINE WORDS`, where WORDS are what stands before a = or the
# first word, and only if they look like a name: a wrong line may be a key that was pasted. A value in quotes may go on over
# several lines, as compose takes it.
settings_lines() {
  [ -r "$GATEHOUSE_ROOT/.env" ] || return 0
  awk '
    NR == 1 { sub(/^\357\273\277/, "") }
    { sub(/\r$/, "") }
    within != "" { if (index($0, within)) within = ""; next }
    /^[ \t]*(#.*)?$/ { next }
    match($0, /^[ \t]*(export[ \t]+)?[A-Za-z_][A-Za-z0-9_.-]*[ \t]*=[ \t]*/) {
      name = substr($0, 1, RLENGTH); value = substr($0, RLENGTH + 1)
      sub(/^[ \t]*(export[ \t]+)?/, "", name); sub(/[ \t]*=[ \t]*$/, "", name)
      print "name " NR " " name
      quote = substr(value, 1, 1)
      if ((quote == "\"" || quote == "\047") && !index(substr(value, 2), quote)) { within = quote; begun = NR }
      next
    }
    {
      sub(/^[ \t]*export[ \t]+/, "")
      words = index($0, "=") ? substr($0, 1, index($0, "=") - 1) : $1
      sub(/^[ \t]+/, "", words); sub(/[ \t:]+$/, "", words); gsub(/[ \t-]+/, "_", words)
      print "wrong " NR " " (words ~ /^[A-Z][A-Z_]*$/ ? words : "")
    }
    END { if (within != "") print "wrong " begun " " }' "$GATEHOUSE_ROOT/.env"
}

# settings_read: stop at a line of .env from which nothing would be read.
settings_read() {
  settings_wrong=$(settings_lines | sed -n 's/^wrong //p' | head -n 1)
  [ -n "$settings_wrong" ] || return 0
  settings_word=${settings_wrong#* }
  fail 2 usage ".env:${settings_wrong%% *}: this line is not NAME=value" \
    "write ${settings_word:-NAME}=value on one line, or put a # before it"
}

# names_known [KEY]: warn about each name in .env that has no effect and looks like a setting of ours. With KEY, a name that may
# be meant for the model's key, in .env or in the environment, stops the command: the demo would answer in the model's place.
names_known() {
  names_found=$(
    {
      settings_names | sed 's/^/known 0 /'
      settings_lines
      # Of the environment only what is nearly the key's name: it holds the variables of other programs too.
      export -p | sed -n 's/^export \(MODEL_[A-Z_]*KEY[A-Z_]*\).*/given 0 \1/p'
    } | awk "$SETTINGS_DISTANCE"'
      $1 == "known" { known[$3] = 1; next }
      $3 in known || $1 == "wrong" { next }
      $1 == "given" { if (distance($3, "MODEL_API_KEY_FILE") <= 3) print "key environment " $3 " MODEL_API_KEY_FILE"; next }
      {
        best = 99
        for (name in known) { far = distance(toupper($3), name); if (far < best || (far == best && name < near)) { best = far; near = name } }
        if (best > (length($3) < 6 ? 1 : 2)) near = ""
        if ($3 ~ /^MODEL_.*KEY/) print "key .env:" $2 " " $3 " MODEL_API_KEY_FILE"
        else if (near != "" || $3 ~ /^(MODEL|TURN|SPAWNER|AGENT|GATEHOUSE|CLAUDE|TUNNEL|CORS|GROUNDING|COMPOSE|EXTRA|PUBLIC|FRONT)_/) print "other .env:" $2 " " $3 " " near
      }'
  )
  while read -r names_kind names_place names_name names_near; do
    case "$names_kind:${1-}" in
      key:KEY)
        fail 2 usage "$names_place: $names_name is not a setting, and the demo would answer in place of a model" \
          "write $names_near=FILE, or remove $names_name"
        ;;
      key:* | other:*)
        say "warning: $names_place: $names_name is not a setting and has no effect (${names_near:+$names_near is one; }all are in docs/how-to/operate.md)"
        ;;
    esac
  done <<NAMES
$names_found
NAMES
}

settings_load() {
  case "${1-}" in help | --help | -h | --version) ;; *) settings_read ;; esac
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

# The loader's own rule (NAME in runtime/agents/folders.py; a test compares). The letters are spelled out, because what a-z
# holds is the locale's affair.
instance_present() {
  agent_letters=abcdefghijklmnopqrstuvwxyz0123456789_
  case "$AGENT" in
    '' | -* | *[!$agent_letters-]*) agent_is_name=no ;;
    *) [ ${#AGENT} -le 63 ] && agent_is_name=yes || agent_is_name=no ;;
  esac
  [ "$agent_is_name" = yes ] ||
    fail 2 usage "GATEHOUSE_AGENT is not a name: $AGENT" "lower-case letters, digits, - and _, not beginning with -, at most 63 characters"
  [ ! -r "$GATEHOUSE_ROOT/instances/$AGENT/agent.yaml" ] || return 0
  instance_near=$(
    for instance_file in "$GATEHOUSE_ROOT"/instances/[!_]*/agent.yaml; do
      instance_file=${instance_file%/agent.yaml}
      [ ! -r "$instance_file/agent.yaml" ] || printf '%s\n' "${instance_file##*/}"
    done | nearest "$AGENT" 3
  )
  fail 3 config-invalid "instances/$AGENT/agent.yaml: there is no such file" \
    "make it: ./gatehouse new $AGENT; or set GATEHOUSE_AGENT${instance_near:+, the nearest is $instance_near}"
}
