# shellcheck shell=sh
# How the host's scripts talk: progress on stderr, one sentence and one mend when they stop, and clearing up after them.

say() { printf 'gatehouse: %s\n' "$*" >&2; }

# fail EXIT CODE SENTENCE MEND: the exit codes and names of runtime/errors.py.
fail() {
  printf 'gatehouse: %s: %s (%s)\n' "$2" "$3" "$4" >&2
  exit "$1"
}

# What must not stay behind when a command stops half way: shell code, newest first.
ON_STOP=:
on_stop() { ON_STOP="$1; $ON_STOP"; }
stopped() {
  stopped_code=$?
  trap - EXIT
  trap : INT TERM HUP # a second signal does not stop the clearing up
  set +e
  eval "$ON_STOP"
  exit "$stopped_code"
}
trap stopped EXIT
trap 'exit 130' INT TERM HUP

# within SECONDS COMMAND…: a command that cannot hang, where the host has timeout(1).
within() {
  within_seconds=$1
  shift
  if command -v timeout >/dev/null 2>&1; then
    timeout "$within_seconds" "$@"
  else
    "$@"
  fi
}

# logged NAME COMMAND…: run with all output in .gatehouse/NAME.log; the exit code is the command's.
logged() {
  logged_file=$GATEHOUSE_STATE/$1.log
  shift
  "$@" >>"$logged_file" 2>&1 9>&-
}

# last_line FILE: the last line with a word in it, for a sentence.
last_line() { sed -n '/[[:alnum:]]/p' "$1" 2>/dev/null | tail -n 1 | cut -c 1-2000; }

is_root() { [ "$(id -u)" = 0 ]; }
