#!/bin/sh
# Runs the tests under the other of the two Pythons that Gatehouse promises, 3.11 and 3.13: under the one that this host's
# environment does not have. Those that need no engine, in a container without network, on a copy of the tree.
# The image holds the locked packages and is made once for a lock, so that a run fetches nothing.
#
#   tests/other_python.sh [PYTEST ARGUMENT…]   instead of everything that can run there
set -eu
GATEHOUSE_ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
GATEHOUSE_HOST=$GATEHOUSE_ROOT/compose/host
for part in words settings lock engine apt images; do
  # shellcheck source=/dev/null
  . "$GATEHOUSE_HOST/$part.sh"
done

# other_image VERSION BASE SUITE: have OTHER_IMAGE, made from this lock on this base.
other_image() {
  OTHER_IMAGE=gatehouse-test-python:$1
  lock_take
  base_image "$2" "$3"
  other_lock=$({
    cat requirements/dev.txt compose/install.sh tests/harness/Dockerfile.python
    docker image inspect --format '{{.Id}}' "$2"
  } | cksum | tr ' ' '-')
  if [ "$(docker image inspect --format '{{index .Config.Labels "gatehouse.lock"}}' "$OTHER_IMAGE" 2>/dev/null)" != "$other_lock" ]; then
    say "building $OTHER_IMAGE (a minute or two for each new lock; log: .gatehouse/other-python.log)"
    : >"$GATEHOUSE_STATE/other-python.log"
    other_before=$(docker image inspect --format '{{.Id}}' "$OTHER_IMAGE" 2>/dev/null) || other_before=
    BUILDKIT_PROGRESS=plain logged other-python docker build --secret "id=extra_ca,src=${EXTRA_CA_CERTS:-/dev/null}" \
      --build-arg "BASE=$2" --label "gatehouse.lock=$other_lock" --tag "$OTHER_IMAGE" --file tests/harness/Dockerfile.python . || {
      other_why=$(sed -n 's/^.*\(ERROR: .*\)$/\1/p' "$GATEHOUSE_STATE/other-python.log" | head -n 1)
      fail 5 image-missing "$OTHER_IMAGE did not build: ${other_why:-$(last_line "$GATEHOUSE_STATE/other-python.log")}" "see .gatehouse/other-python.log"
    }
    # The one of the earlier lock serves nobody any more.
    [ -z "$other_before" ] || docker rmi "$other_before" >/dev/null 2>&1 || :
  fi
  lock_release
}

# other_run VERSION PYTEST ARGUMENT…: what is hidden in the tree (.venv, .git, .gatehouse, caches) stays outside.
other_run() {
  other_version=$1
  shift
  say "running tests under Python $other_version, in $OTHER_IMAGE"
  docker run --rm --init --network none --pids-limit 2048 --volume "$GATEHOUSE_ROOT:/tree:ro" "$OTHER_IMAGE" sh -euc '
    python -c "import sys; assert \"%d.%d\" % sys.version_info[:2] == sys.argv[1], sys.version" "$1"
    shift
    tar -C /tree -cf - --exclude="./.[!cdg]*" --exclude="./.git" --exclude="./.gatehouse" . | tar -xf -
    exec python -m pytest -p no:cacheprovider "$@"
  ' - "$other_version" "$@"
}

settings_load
cd "$GATEHOUSE_ROOT"
engine_socket
engine_answers || fail 4 engine-unavailable "no engine answers at $DOCKER_SOCKET" "./gatehouse test starts one"
# Of what a property test tries out, the host's own Python has had the full number (tests/conftest.py).
[ $# -gt 0 ] || set -- -q --hypothesis-profile other -m "not engine and not host_only"
host_version=$(python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ "$host_version" != 3.11 ]; then
  other_image 3.11 debian:bookworm-slim bookworm
  other_run 3.11 "$@"
fi
if [ "$host_version" != 3.13 ]; then
  other_image 3.13 "${BASE:-debian:trixie-slim}" trixie
  other_run 3.13 "$@"
fi
