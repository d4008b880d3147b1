# shellcheck shell=sh
# One command at a time in one checkout: two `docker compose up` at once are not harmless.

lock_take() {
  mkdir -p "$GATEHOUSE_STATE"
  # A recipe that `test` runs may call ./gatehouse again: the lock is its grandparent's.
  [ -z "${GATEHOUSE_LOCKED-}" ] || return 0
  command -v flock >/dev/null 2>&1 ||
    fail 4 host-not-ready "flock is not installed here" "install util-linux; or use docker compose up"
  exec 9>>"$GATEHOUSE_STATE/lock"
  if ! flock -n 9; then
    say "another ./gatehouse is at work here: waiting for it"
    flock -w "${GATEHOUSE_LOCK_SECONDS:-1200}" 9 ||
      fail 4 host-not-ready "another ./gatehouse still holds $GATEHOUSE_STATE/lock" "let it finish, or end it, and run this again"
  fi
  GATEHOUSE_LOCKED=$$
  export GATEHOUSE_LOCKED
}

lock_release() {
  [ "${GATEHOUSE_LOCKED-}" = $$ ] || return 0
  exec 9>&-
  unset GATEHOUSE_LOCKED
}
