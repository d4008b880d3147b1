#!/bin/sh
# Makes the environments of the clients that tests/clients runs, as `./gatehouse test` does; with a name, says by its exit code
# whether that one is as its lock wants it.
#
#   tests/clients/environments.sh [NAME]
set -eu
GATEHOUSE_ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)
GATEHOUSE_HOST=$GATEHOUSE_ROOT/compose/host
for part in words settings lock apt python clients; do
  # shellcheck source=/dev/null
  . "$GATEHOUSE_HOST/$part.sh"
done

if [ $# -gt 0 ]; then
  client_current "$1"
  exit
fi
settings_load
lock_take
python_ready
clients_ready
