#!/bin/sh
# Runs the unit tests under Python 3.13, the images' own, where the host's is older: in a container of the base image, with
# the locked packages, on a copy of the tree without what is hidden in it (.venv, .git, .gatehouse, caches).
set -eu
cd "$(dirname "$0")/.."
authority=${EXTRA_CA_CERTS:-/dev/null}
exec docker run --rm --pids-limit 1024 --env PIP_CERT="$([ "$authority" = /dev/null ] || echo /run/extra_ca)" \
  --volume "$authority:/run/extra_ca:ro" --volume "$PWD:/tree:ro" "${BASE:-debian:trixie-slim}" sh -euc '
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends python3 python3-venv >/dev/null
    python3 -m venv /venv
    [ -n "$PIP_CERT" ] || unset PIP_CERT
    /venv/bin/pip --quiet --disable-pip-version-check install --require-hashes --only-binary :all: --requirement /tree/requirements/dev.txt
    mkdir /copy
    tar -C /tree -cf - --exclude=./.[!d]* . | tar -C /copy -xf -
    cd /copy
    PATH=/venv/bin:$PATH exec python -m pytest tests/unit -q "$@"
  ' - "$@"
