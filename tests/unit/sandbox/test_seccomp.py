"""sandbox/seccomp.json: deny by default, short, every entry explained, nothing known as bad let through."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.control("SYS-01")

PROFILE: dict[str, Any] = json.loads((Path(__file__).parents[3] / "sandbox" / "seccomp.json").read_text())
ENTRIES: list[dict[str, Any]] = PROFILE["syscalls"]
ALLOWED = [entry for entry in ENTRIES if entry["action"] == "SCMP_ACT_ALLOW"]
NAMES = {name for entry in ALLOWED for name in entry["names"]}
ENOSYS = 38

BAD = {
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "bpf", "perf_event_open"),
    *("keyctl", "add_key", "request_key", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd"),
    *("unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "fsopen", "open_tree", "move_mount"),
    *("open_by_handle_at", "name_to_handle_at", "inotify_init", "inotify_init1", "inotify_add_watch"),
    *("fanotify_init", "flock", "mincore", "memfd_create", "execveat", "splice", "vmsplice", "tee"),
    *("kexec_load", "init_module", "finit_module", "iopl", "modify_ldt", "lookup_dcookie", "personality"),
    *("setuid", "setgid", "setresuid", "setgroups", "capset", "sched_setscheduler", "mknod", "clone3"),
    "seccomp",
}


def only(name: str) -> list[dict[str, Any]]:
    return [entry for entry in ALLOWED if name in entry["names"]]


def test_what_is_not_listed_does_not_exist_and_only_the_64_bit_abi_does() -> None:
    assert PROFILE["defaultAction"] == "SCMP_ACT_ERRNO"
    assert PROFILE["defaultErrnoRet"] == ENOSYS
    assert PROFILE["architectures"] == ["SCMP_ARCH_X86_64"]


def test_the_list_is_short() -> None:
    assert len(NAMES) <= 140


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_call_that_is_known_as_bad_is_not_allowed_in_any_form(name: str) -> None:
    assert only(name) == []


def test_every_entry_says_where_it_comes_from() -> None:
    for entry in ENTRIES:
        assert entry["comment"], entry["names"]
        if entry["action"] == "SCMP_ACT_ALLOW":
            assert entry["comment"].startswith(("traced: ", "margin: ", "runc: ")), entry["comment"]
    assert all(entry["action"] in {"SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"} for entry in ENTRIES)


def test_no_name_is_both_allowed_and_denied_nor_allowed_with_and_without_conditions() -> None:
    denied = {name for entry in ENTRIES if entry["action"] != "SCMP_ACT_ALLOW" for name in entry["names"]}
    assert not denied & NAMES
    for name in NAMES:
        conditions = [bool(entry.get("args")) for entry in only(name)]
        assert len(set(conditions)) == 1, name
        assert conditions[0] or len(conditions) == 1, name


def test_sockets_are_unix_or_ipv4_streams() -> None:
    families = [arg["value"] for entry in only("socket") for arg in entry["args"] if arg["index"] == 0]
    assert families == [1, 2]
    for entry in only("socket"):
        assert {"index": 1, "value": 0xF, "valueTwo": 1, "op": "SCMP_CMP_MASKED_EQ"} in entry["args"]


def test_clone_makes_no_namespace_and_clone3_sends_libc_back_to_clone() -> None:
    (entry,) = only("clone")
    assert entry["args"] == [{"index": 0, "value": 0x7E020000, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]
    (clone3,) = [entry for entry in ENTRIES if entry["names"] == ["clone3"]]
    assert clone3["errnoRet"] == ENOSYS


@pytest.mark.parametrize(
    ("name", "index", "forbidden"),
    [
        ("ioctl", 1, {0x5412: "TIOCSTI", 0x541C: "TIOCLINUX"}),
        ("fcntl", 1, {1026: "F_NOTIFY", 1024: "F_SETLEASE", 5: "F_GETLK", 6: "F_SETLK", 37: "F_OFD_SETLK"}),
        ("prctl", 0, {22: "PR_SET_SECCOMP", 47: "PR_CAP_AMBIENT", 0x59616D61: "PR_SET_PTRACER"}),
    ],
)
def test_a_call_with_many_commands_allows_named_ones_only(
    name: str, index: int, forbidden: dict[int, str]
) -> None:
    for entry in only(name):
        (command,) = [argument for argument in entry["args"] if argument["index"] == index]
        assert command["op"] == "SCMP_CMP_EQ"
        assert command["value"] not in forbidden
