# shellcheck shell=sh
# The Python environment of `test` and `just`, locked with hashes and made again only when its lock changes.
# `up` needs none of it.

python_find() {
  for python_name in python3 python3.13 python3.12 python3.11; do
    command -v "$python_name" >/dev/null 2>&1 || continue
    "$python_name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue
    PYTHON=$python_name
    return 0
  done
  return 1
}

python_ready() {
  python_folder=$GATEHOUSE_ROOT/.venv
  python_stamp=$(cat "$GATEHOUSE_ROOT/requirements/dev.txt" "$GATEHOUSE_HOST/python.sh" | cksum)
  [ "$(cat "$python_folder/gatehouse.stamp" 2>/dev/null)" = "$python_stamp" ] && [ -x "$python_folder/bin/python" ] && return 0
  if [ ! -x "$python_folder/bin/pip" ] || ! "$python_folder/bin/python" -c '' 2>/dev/null; then
    if ! python_find; then
      apt_may 4 host-not-ready "no Python of version 3.11 or later with venv is on this host" "install python3 and python3-venv"
      apt_update
      apt_install python3 python3-venv ca-certificates
      python_find || fail 4 host-not-ready "this distribution's Python is older than 3.11" "install Python 3.11 or later with venv"
    fi
    say "making .venv with $PYTHON"
    rm -rf "$python_folder"
    logged venv "$PYTHON" -m venv "$python_folder" ||
      fail 4 host-not-ready "no virtual environment could be made: $(last_line "$GATEHOUSE_STATE/venv.log")" "see .gatehouse/venv.log"
  fi
  say "installing requirements/dev.txt into .venv (log: .gatehouse/venv.log)"
  [ -n "${PIP_CERT-}" ] || [ -z "${EXTRA_CA_CERTS-}" ] || export PIP_CERT="$EXTRA_CA_CERTS"
  logged venv "$python_folder/bin/python" -m pip install --disable-pip-version-check --no-input --require-hashes \
    --only-binary :all: --requirement "$GATEHOUSE_ROOT/requirements/dev.txt" ||
    fail 4 host-not-ready "pip install failed: $(sed -n 's/^ERROR: //p' "$GATEHOUSE_STATE/venv.log" | tail -n 1)" "see .gatehouse/venv.log"
  # The tree itself, editable. A path file does it without a build, which would fetch a build backend that no lock holds.
  for python_site in "$python_folder"/lib/python3*/site-packages; do
    printf '%s\n' "$GATEHOUSE_ROOT" >"$python_site/gatehouse.pth"
  done
  printf '%s\n' "$python_stamp" >"$python_folder/gatehouse.stamp"
}

# just_run RECIPE…: in the environment, with the real directory of this checkout as its own.
just_run() {
  [ -x "$GATEHOUSE_ROOT/.venv/bin/just" ] || fail 4 host-not-ready ".venv has no just" "delete .venv and run this again"
  PATH=$GATEHOUSE_ROOT/.venv/bin:$PATH
  export PATH
  just --justfile "$GATEHOUSE_ROOT/Justfile" "$@"
}
