"""An engine that is missing is installed, one that is stopped is started, and a good one is left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.host.conftest import Host

DEBIAN_13 = 'ID=debian\nVERSION_ID="13"\nVERSION_CODENAME=trixie\n'
UBUNTU = 'ID=ubuntu\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\nID_LIKE=debian\n'
SOURCES = (
    "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n"
)
# The engine answers once dockerd has been started.
DOCKER_AFTER_DOCKERD = (
    '"version "*) [ -e "$HOST/serving" ] || { echo "Cannot connect" >&2; exit 1; }; echo "api 1.45" ;;'
)
DOCKERD = 'case "$1" in --version) echo "Docker version 26.1.5" ;; *) : >"$HOST/serving"; sleep 0.2 ;; esac'


def bare_apt(host: Host, *, candidates: tuple[str, ...]) -> None:
    """Give the host an apt with one version of docker.io before and another after a source is added."""
    before, after = candidates[0], candidates[-1]
    host.program(
        "apt-cache",
        f'[ -e "$HOST/etc/apt/preferences.d/gatehouse-trixie" ] && v={after} || v={before}\n'
        'echo "docker.io:"; echo "  Installed: (none)"; echo "  Candidate: $v"',
    )
    host.program("dpkg", "")
    host.docker(DOCKER_AFTER_DOCKERD)
    host.program("dockerd", DOCKERD)
    for name in ("docker", "dockerd"):
        (host.folder / "bin" / name).rename(host.folder / name)
    host.program(
        "apt-get",
        'case "$*" in *" docker.io "*) mv "$HOST/docker" "$HOST/dockerd" "$HOST/bin/" ;; esac',
    )
    (host.folder / "etc/apt/sources.list.d").mkdir(parents=True)
    (host.folder / "etc/apt/preferences.d").mkdir()


def installed(host: Host) -> list[str]:
    return [call.rpartition("Acquire::Retries=3 ")[2] for call in host.called("apt-get install")]


def test_a_good_engine_is_left_alone(host: Host) -> None:
    host.docker()
    for name in ("apt-get", "apt-cache", "dpkg", "dockerd", "systemctl"):
        host.program(name, "exit 1")
    assert host.shell("engine_ready; echo $ENGINE_API") == "1.45\n"
    assert not [call for call in host.calls() if not call.startswith(("docker ", "id "))]


def test_debian_12_gets_debian_13s_engine_from_its_own_mirror_and_nothing_else_of_it(host: Host) -> None:
    bare_apt(host, candidates=("20.10.24+dfsg1-1+b3", "26.1.5+dfsg1-9"))
    host.file("etc/apt/sources.list.d/debian.sources", SOURCES)
    assert host.shell("engine_ready; echo $ENGINE_API") == "1.45\n"
    assert installed(host) == [
        "debian-archive-keyring",
        "docker.io docker-cli docker-compose docker-buildx iptables ca-certificates",
    ]
    source = (host.folder / "etc/apt/sources.list.d/gatehouse-trixie.sources").read_text()
    assert source.splitlines()[1:] == [
        "Types: deb",
        "URIs: http://mirror.example/debian",
        "Suites: trixie",
        "Components: main",
    ]
    pins = (host.folder / "etc/apt/preferences.d/gatehouse-trixie").read_text()
    assert pins == (
        "Package: *\nPin: release n=trixie\nPin-Priority: 50\n\n"
        "Package: docker.io docker-cli docker-compose docker-buildx runsc\n"
        "Pin: release n=trixie\nPin-Priority: 700\n"
    )
    assert not (host.tree / ".gatehouse/installing").exists()


@pytest.mark.parametrize(
    ("release", "packages"),
    [
        (DEBIAN_13, "docker.io docker-cli docker-compose docker-buildx iptables ca-certificates"),
        (UBUNTU, "docker.io docker-compose-v2 docker-buildx iptables ca-certificates"),
    ],
)
def test_a_distribution_with_a_new_enough_engine_gets_no_other_source(
    host: Host, release: str, packages: str
) -> None:
    bare_apt(host, candidates=("28.2.2-0ubuntu1",))
    host.file("etc/os-release", release)
    host.shell("engine_ready")
    assert installed(host) == [packages]
    assert not list((host.folder / "etc/apt/sources.list.d").iterdir())


def test_where_the_kernel_has_apparmor_on_its_parser_comes_too(host: Host) -> None:
    bare_apt(host, candidates=("26.1.5+dfsg1-9",))
    host.file("etc/os-release", DEBIAN_13)
    host.file("sys/module/apparmor/parameters/enabled", "Y\n")
    host.shell("engine_ready")
    assert "apparmor" in installed(host)[0].split()


def test_an_old_ubuntu_gets_a_message_and_keeps_its_packages(host: Host) -> None:
    bare_apt(host, candidates=("20.10.7-0ubuntu5",))
    host.file("etc/os-release", UBUNTU)
    done = host.run("up")
    assert done.returncode == 4
    assert "engine-too-old: this distribution has no docker.io of version 26 or later" in done.stderr
    assert not installed(host)


def test_a_host_without_a_source_of_its_own_gets_a_message(host: Host) -> None:
    bare_apt(host, candidates=("20.10.24",))
    done = host.run("up")
    assert done.returncode == 4
    assert "no source for bookworm main" in done.stderr
    assert not installed(host)


def test_an_installation_that_stopped_half_way_goes_on(host: Host) -> None:
    bare_apt(host, candidates=("26.1.5+dfsg1-9",))
    host.file("checkout/.gatehouse/installing", "")
    host.shell("engine_ready")
    assert host.called("dpkg") == ["dpkg --configure -a"]
    assert installed(host) == ["docker.io docker-cli docker-compose docker-buildx iptables ca-certificates"]


def test_a_failed_installation_says_what_apt_said(host: Host) -> None:
    bare_apt(host, candidates=("26.1.5+dfsg1-9",))
    host.program(
        "apt-get", 'case "$*" in install*) echo "E: Unable to locate package docker-buildx"; exit 100 ;; esac'
    )
    done = host.run("up")
    assert done.returncode == 4
    assert "failed: Unable to locate package docker-buildx (see .gatehouse/apt.log)" in done.stderr
    assert (host.tree / ".gatehouse/installing").exists()


def test_without_systemd_a_stopped_engine_is_started_as_a_process(host: Host) -> None:
    host.docker(DOCKER_AFTER_DOCKERD)
    host.program("dockerd", DOCKERD)
    host.shell("engine_ready")
    assert host.called("dockerd") == ["dockerd --version", "dockerd "]


def test_with_systemd_a_stopped_engine_is_started_by_it(host: Host) -> None:
    (host.folder / "run/systemd/system").mkdir(parents=True)
    host.docker(DOCKER_AFTER_DOCKERD)
    host.program("dockerd", DOCKERD)
    host.program("systemctl", ': >"$HOST/serving"')
    host.shell("engine_ready")
    assert host.called("systemctl") == ["systemctl start docker"]
    assert host.called("dockerd") == ["dockerd --version"]


def test_an_engine_that_does_not_come_up_is_named_with_its_last_line(host: Host) -> None:
    host.docker('"version "*) echo "Cannot connect" >&2; exit 1 ;;')
    host.program(
        "dockerd",
        'case "$1" in --version) ;; *) echo "failed to start daemon: no space left" >&2; exit 1 ;; esac',
    )
    done = host.run("up")
    assert done.returncode == 4
    assert (
        "engine-unavailable: dockerd does not come up: failed to start daemon: no space left" in done.stderr
    )


@pytest.mark.parametrize(
    ("file", "program"), [("docker.pid", "dockerd"), ("docker/containerd/containerd.pid", "containerd")]
)
@pytest.mark.parametrize(
    ("stat", "kept"),
    [
        ("4711 (PROGRAM) S 1 4711", True),
        ("4711 (PROGRAM) Z 1 4711", False),
        ("4711 (postgres) S 1 4711", False),
        (None, False),
    ],
    ids=["alive", "zombie", "another program", "gone"],
)
def test_only_the_pid_file_of_a_process_that_lives_is_kept(
    host: Host, file: str, program: str, stat: str | None, *, kept: bool
) -> None:
    pid_file = host.file(f"var/run/{file}", "4711")
    if stat:
        host.file("proc/4711/stat", stat.replace("PROGRAM", program))
    found = "4711" if kept and program == "dockerd" else ""
    assert host.shell('engine_forget_stale; echo "pid=$ENGINE_PID"') == f"pid={found}\n"
    assert pid_file.exists() is kept


def test_the_started_engine_does_not_hold_the_lock(host: Host) -> None:
    host.docker(DOCKER_AFTER_DOCKERD)
    host.program(
        "dockerd",
        'case "$1" in --version) ;; *) (: >&9) 2>/dev/null && : >"$HOST/leaked"; : >"$HOST/serving" ;; esac',
    )
    host.shell("lock_take; engine_ready")
    assert (host.folder / "serving").exists()
    assert not (host.folder / "leaked").exists()
