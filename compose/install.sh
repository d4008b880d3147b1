#!/bin/sh
# Installs one locked list into /opt/venv, with hashes and wheels only, from the index behind an extra authority if given.
set -eu
if [ -s /run/secrets/extra_ca ]; then
  export PIP_CERT=/run/secrets/extra_ca
fi
exec /opt/pip/bin/pip --python /opt/venv/bin/python install \
  --no-cache-dir --disable-pip-version-check --require-hashes --only-binary :all: --requirement "$1"
