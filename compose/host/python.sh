# shellcheck shell=sh
# The two Python environments, each locked with hashes and made again only when its lock, its Python or its place changes:
# .venv for `test` and `just`, and .gatehouse/cli for the commands of an author, which need no engine. `up` needs neither.

python_find() {
  for python_name in python3 python3.13 python3.12 python3.11; do
    command -v "$python_name" >/dev/null 2>&1 || continue
    "$python_name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue
    PYTHON=$python_name
    return 0
  done
  return 1
}

# python_current FOLDER LOCK: was this environment made from this lock, with the Python that it still has, for this checkout?
python_current() {
  [ -x "$1/bin/python" ] && [ "$(cat "$1/gatehouse.stamp" 2>/dev/null)" = "$(python_stamp "$1" "$2")" ]
}

python_stamp() {
  {
    # shellcheck disable=SC2153 # ./gatehouse sets it
    cat "$GATEHOUSE_ROOT/requirements/$2.txt" "$GATEHOUSE_HOST/python.sh"
    printf '%s\n' "$GATEHOUSE_ROOT"
    readlink -f "$1/bin/python" || :
  } | cksum
}

# python_make FOLDER: an empty environment.
python_make() {
  if ! python_find; then
    apt_may 4 host-not-ready "no Python of version 3.11 or later with venv is on this host" "install python3 and python3-venv"
    apt_update
    apt_install python3 python3-venv ca-certificates
    python_find || fail 4 host-not-ready "this distribution's Python is older than 3.11" "install Python 3.11 or later with venv"
  fi
  rm -rf "$1"
  logged venv "$PYTHON" -m venv "$1" ||
    fail 4 host-not-ready "no virtual environment could be made: $(last_line "$GATEHOUSE_STATE/venv.log")" "see .gatehouse/venv.log"
}

# python_install FOLDER LOCK: what the lock names, and the tree itself, editable. A path file does that without a build, which
# would fetch a build backend that no lock holds.
python_install() {
  [ -n "${PIP_CERT-}" ] || [ -z "${EXTRA_CA_CERTS-}" ] || export PIP_CERT="$EXTRA_CA_CERTS"
  logged venv "$1/bin/python" -m pip install --disable-pip-version-check --no-input --require-hashes \
    --only-binary :all: --requirement "$GATEHOUSE_ROOT/requirements/$2.txt" ||
    fail 4 host-not-ready "pip install failed: $(sed -n 's/^ERROR: //p' "$GATEHOUSE_STATE/venv.log" | tail -n 1)" "see .gatehouse/venv.log"
  for python_site in "$1"/lib/python3*/site-packages; do
    printf '%s\n' "$GATEHOUSE_ROOT" >"$python_site/gatehouse.pth"
  done
}

python_ready() {
  python_folder=$GATEHOUSE_ROOT/.venv
  ! python_current "$python_folder" dev || return 0
  if ! "$python_folder/bin/python" -c 'import pip' 2>/dev/null; then
    say "making .venv"
    python_make "$python_folder"
  fi
  say "installing requirements/dev.txt into .venv (log: .gatehouse/venv.log)"
  python_install "$python_folder" dev
  python_stamp "$python_folder" dev >"$python_folder/gatehouse.stamp"
}

# --- the author's commands ---------------------------------------------------------------------------------
# cli_current: put the Python that has all they need into CLI_PYTHON; fails when there is none yet.
cli_current() {
  for cli_pair in .venv:dev .gatehouse/cli:cli; do
    cli_folder=$GATEHOUSE_ROOT/${cli_pair%:*}
    python_current "$cli_folder" "${cli_pair#*:}" || continue
    CLI_PYTHON=$cli_folder/bin/python
    return 0
  done
  return 1
}

# cli_ready: make it when there is none. Its lock is one of its own: these commands never wait for a start or for `test`. It is
# made aside and moved, so that there is a whole one or none.
cli_ready() {
  ! cli_current || return 0
  mkdir -p "$GATEHOUSE_STATE" 2>/dev/null && [ -w "$GATEHOUSE_STATE" ] ||
    fail 4 host-not-ready "$GATEHOUSE_STATE cannot be written by $(id -un)" "run this once as who owns the checkout, or chown it"
  if command -v flock >/dev/null 2>&1; then
    exec 9>>"$GATEHOUSE_STATE/cli.lock"
    flock -w "${GATEHOUSE_LOCK_SECONDS:-1200}" 9 ||
      fail 4 host-not-ready "another command still makes .gatehouse/cli" "let it finish, or end it, and run this again"
    if cli_current; then
      exec 9>&-
      return 0
    fi
  fi
  say "making .gatehouse/cli from requirements/cli.txt: about half a minute, once (log: .gatehouse/venv.log)"
  # shellcheck disable=SC2016 # run at the end
  on_stop 'rm -rf "$GATEHOUSE_STATE/cli.new"'
  python_make "$GATEHOUSE_STATE/cli.new"
  python_install "$GATEHOUSE_STATE/cli.new" cli
  rm -rf "$GATEHOUSE_STATE/cli"
  mv "$GATEHOUSE_STATE/cli.new" "$GATEHOUSE_STATE/cli"
  python_stamp "$GATEHOUSE_STATE/cli" cli >"$GATEHOUSE_STATE/cli/gatehouse.stamp"
  CLI_PYTHON=$GATEHOUSE_STATE/cli/bin/python
  exec 9>&-
}

# cli_run WORD…: become the command. Isolated, so that neither the folder it is called from nor the user's own Python settings
# can put another module in its way; the text is UTF-8 whatever the locale.
cli_run() {
  export GATEHOUSE_ROOT
  exec "$CLI_PYTHON" -I -X utf8 -m runtime.cli "$@"
}

# just_run RECIPE…: in the environment, with the real directory of this checkout as its own.
just_run() {
  [ -x "$GATEHOUSE_ROOT/.venv/bin/just" ] || fail 4 host-not-ready ".venv has no just" "delete .venv and run this again"
  PATH=$GATEHOUSE_ROOT/.venv/bin:$PATH
  export PATH
  just --justfile "$GATEHOUSE_ROOT/Justfile" "$@"
}
