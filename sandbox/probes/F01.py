"""F01: can a turn write, create, chmod, rename, unlink or link anything under its grounding?"""

import errno
import json
import os
import sys

root = sys.argv[1] if len(sys.argv) > 1 else "/grounding"
files = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names][:50]
attempts = {}


def attempt(label, action, *arguments):
    try:
        action(*arguments)
    except OSError as error:
        attempts[label] = errno.errorcode.get(error.errno, type(error).__name__)
    else:
        attempts[label] = "changed"


def write(path, flags):
    descriptor = os.open(path, flags, 0o644)
    os.write(descriptor, b"changed by F01\n")
    os.close(descriptor)


new = os.path.join(root, "f01-new")
attempt("create", write, new, os.O_WRONLY | os.O_CREAT)
attempt("mkdir", os.mkdir, new + "-folder")
attempt("symlink", os.symlink, "/etc/passwd", new + "-link")
attempt("mkfifo", os.mkfifo, new + "-fifo")
attempt("chmod folder", os.chmod, root, 0o777)
attempt("utime folder", os.utime, root)
attempt("rename folder", os.rename, root, root + "-moved")
for path in files:
    name = os.path.relpath(path, root)
    attempt(f"append {name}", write, path, os.O_WRONLY | os.O_APPEND)
    attempt(f"truncate {name}", os.truncate, path, 0)
    attempt(f"open rw {name}", lambda path=path: os.close(os.open(path, os.O_RDWR)))
    attempt(f"chmod {name}", os.chmod, path, 0o666)
    attempt(f"chown {name}", os.chown, path, os.getuid(), os.getgid())
    attempt(f"utime {name}", os.utime, path)
    attempt(f"setxattr {name}", os.setxattr, path, "user.f01", b"x")
    attempt(f"link out {name}", os.link, path, "/tmp/f01-link")
    attempt(f"link in {name}", os.link, path, path + ".f01")
    attempt(f"rename {name}", os.rename, path, path + ".f01")
    attempt(f"unlink {name}", os.unlink, path)
    attempt(
        f"through /proc {name}",
        lambda path=path: write(f"/proc/self/fd/{os.open(path, os.O_RDONLY)}", os.O_WRONLY),
    )
changed = sorted(label for label, answer in attempts.items() if answer == "changed")
print(
    json.dumps(
        {
            "probe": "F01",
            "outcome": "changed" if changed else "denied",
            "changed": changed,
            "files": len(files),
            "attempts": attempts,
        }
    )
)
