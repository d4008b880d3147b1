"""Names that Bash may never run, given to the CLI as deny rules (seed S1 §4): a backstop, not a control.

No turn has Bash at all (architecture §4), so these rules decide nothing today; they are there in case a CLI
update or a mistake of ours brings Bash back. `python3` is not among them, because seed S1 §4 lets granted
tools run by it.
"""

from __future__ import annotations

READERS = (
    "cat", "tac", "head", "tail", "less", "more", "most", "nl", "od", "xxd", "hexdump", "strings", "fold",
    "fmt", "pr", "cut", "paste", "column", "rev", "bat", "batcat",
)  # fmt: skip
SEARCH = ("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "find", "fd", "fdfind", "locate")
INTERPRETERS = (
    "sed", "awk", "gawk", "mawk", "nawk", "perl", "ruby", "node", "deno", "bun", "php", "lua", "tclsh",
    "python", "python2", "osascript", "jq", "yq", "tr", "sort", "uniq", "xargs", "m4", "bc",
)  # fmt: skip
EDITORS = ("vi", "vim", "nvim", "nano", "emacs", "ed", "ex", "pico", "view", "micro")
ENCODERS = (
    "base64", "base32", "basenc", "openssl", "md5sum", "sha1sum", "sha256sum", "sha512sum", "shasum", "md5",
    "cksum", "uuencode", "gpg",
)  # fmt: skip
ARCHIVERS = ("tar", "zip", "unzip", "gzip", "gunzip", "zcat", "bzip2", "xz", "zstd", "7z", "cpio", "ar")
COMPARERS = ("diff", "cmp", "comm", "sdiff", "vimdiff", "patch")
VERSION_CONTROL = ("git", "hg", "svn", "gh", "cvs")
SECRETS_AND_HOST = (
    "security", "sqlite3", "defaults", "env", "printenv", "set", "export", "ps", "top", "lsof", "who", "id",
    "mount", "dmesg", "getent",
)  # fmt: skip
NETWORK = (
    "curl", "wget", "nc", "ncat", "netcat", "socat", "telnet", "ssh", "scp", "sftp", "rsync", "ftp", "ping",
    "dig", "nslookup",
)  # fmt: skip
SIDE_EFFECTS = (
    "pbcopy", "pbpaste", "xclip", "open", "xdg-open", "tee", "dd", "du", "install", "ln", "mv", "rm", "chmod",
)  # fmt: skip

GROUPS = {
    "readers and dumpers": READERS,
    "search": SEARCH,
    "stream editors and interpreters": INTERPRETERS,
    "editors": EDITORS,
    "hashing and encoding": ENCODERS,
    "archivers": ARCHIVERS,
    "comparers": COMPARERS,
    "version control": VERSION_CONTROL,
    "secret stores and host recon": SECRETS_AND_HOST,
    "network": NETWORK,
    "clipboard, launch and side effects": SIDE_EFFECTS,
}

NAMES = tuple(name for group in GROUPS.values() for name in group)
DENYLIST = ",".join(f"Bash({name}:*)" for name in NAMES)
