"""K08: is this process without capabilities, without new privileges, filtered, and stuck with its uid?"""

import errno
import json
import os

status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines() if ":" in line)
status = {key: value.strip() for key, value in status.items()}
capabilities = {key: int(status[key], 16) for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
attempts = {}


def attempt(label, action, *arguments):
    child = os.fork()  # in a child: a success must not change what is tried next
    if child == 0:
        try:
            action(*arguments)
        except OSError as error:
            os._exit(error.errno or 254)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    attempts[label] = "done" if code == 0 else errno.errorcode.get(code, str(code))


attempt("setuid 0", os.setuid, 0)
attempt("setgid 0", os.setgid, 0)
attempt("setresuid 0", os.setresuid, 0, 0, 0)
attempt("setgroups", os.setgroups, [0])
attempt("chroot", os.chroot, "/tmp")
attempt("nice -5", os.nice, -5)
setuid_files = []
for folder, names, leaves in os.walk("/"):
    names[:] = [name for name in names if os.path.join(folder, name) not in ("/proc", "/sys")]
    for leaf in leaves:
        path = os.path.join(folder, leaf)
        try:
            if os.lstat(path).st_mode & 0o6000:
                setuid_files.append(path)
        except OSError:
            continue
confined = (
    not any(capabilities.values())
    and status.get("NoNewPrivs") == "1"
    and status.get("Seccomp") == "2"
    and "done" not in attempts.values()
    and not setuid_files
    and os.getuid() != 0
)
print(
    json.dumps(
        {
            "probe": "K08",
            "outcome": "confined" if confined else "loose",
            "capabilities": capabilities,
            "no_new_privs": status.get("NoNewPrivs"),
            "seccomp": status.get("Seccomp"),
            "uid": os.getuid(),
            "gid": os.getgid(),
            "groups": status.get("Groups", "").split(),
            "attempts": attempts,
            "setuid_files": setuid_files,
        }
    )
)
