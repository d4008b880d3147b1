# Every recipe that CI runs; `./gatehouse just RECIPE` runs one in the set-up environment.
set shell := ["sh", "-eu", "-c"]
export PATH := justfile_directory() / ".venv/bin" + ":" + env("PATH")

python_files := "."

# List the recipes
default:
    @just --list --unsorted

# Everything that must hold: lint, types, all tests, and under the other Python those that need no engine
ci: lint types tests

# All tests, in two halves side by side: those with an engine mostly wait, the others compute
[parallel]
tests: engine light

# Tests that need no engine, under this Python and then under the other
light: unit other-python

# Style and format, of Python and of shell
lint:
    ruff check {{python_files}}
    ruff format --check {{python_files}}
    shellcheck --shell sh gatehouse compose/host/*.sh compose/*.sh sandbox/*.sh tests/*.sh tests/*/*.sh

# Static types, strict, for both Pythons
[parallel]
types: (mypy "3.11") (mypy "3.13")

[private]
mypy version:
    mypy --python-version {{version}}

# Mend style and format where ruff can
format:
    ruff check --fix-only {{python_files}}
    ruff format {{python_files}}

# All tests, or those that the arguments name
pytest *arguments:
    pytest {{arguments}}

# Tests that need no engine
unit *arguments:
    pytest -m "not engine" {{arguments}}

# The same under the other Python, 3.11 or 3.13, in a container
other-python *arguments:
    sh tests/other_python.sh {{arguments}}

# Tests that need the engine and the images
engine *arguments:
    pytest -m engine {{arguments}}

# Whole turns with the real CLI in real containers
e2e *arguments:
    pytest tests/e2e {{arguments}}

# Turns without a sandbox, of a stub in the CLI's place: no engine, no network, no CLI
hermetic *arguments:
    pytest tests/hermetic {{arguments}}

# Engine, spawner, front and clients that fail, on an engine of the tests' own
faults *arguments:
    pytest tests/faults {{arguments}}

# Clients of other makers, each in an environment of its own, made first where it is missing
clients *arguments:
    sh tests/clients/environments.sh
    pytest tests/clients {{arguments}}

# Every way in which a turn can end, each for real
endings *arguments:
    pytest tests/endings {{arguments}}

# Attacks from inside a turn, each with its twin
escape *arguments:
    pytest tests/escape {{arguments}}

# The figures of the README, measured here; exit code 1 where one is not what is wanted of it
bench *arguments:
    python -m tests.bench {{arguments}}

# Check instances, all or those named: every mistake with its place and mend
check *names:
    python -m runtime.cli check {{names}}

# Write docs/reference/settings.md from the table of settings
settings:
    python -m runtime.agents.reference > docs/reference/settings.md

# Write docs/reference/agent.schema.json from the same table, for editors
schema:
    python -m runtime.agents.schema > docs/reference/agent.schema.json

# Write docs/reference/cli.md from the commands' own help
cli-reference:
    python -m runtime.cli.reference > docs/reference/cli.md

# Sizes of the images, and their setuid and setgid files
sizes:
    @sh compose/sizes.sh

# Build the images
images:
    docker compose build

# Lock every extra with hashes and without an index's address
lock:
    for extra in front spawner modelproxy cli dev; do \
      uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet \
        --extra "$extra" pyproject.toml --output-file "requirements/$extra.txt"; done
    for client in a2a-0.3 litellm; do \
      uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet \
        --group "client-$client" --output-file "requirements/client-$client.txt"; done

# Known faults of the locked packages
audit:
    for lock in requirements/*.txt; do pip-audit --require-hashes --disable-pip --requirement "$lock"; done

# Start the stack
up:
    ./gatehouse up

# Take the stack down
down *arguments:
    ./gatehouse down {{arguments}}
