from __future__ import annotations

import re

from runtime.spawner.denylist import DENYLIST, GROUPS, NAMES

ASKED_FOR = """
    cat head tail grep find sed awk perl node python base64 openssl tar diff git security sqlite3 defaults env
    printenv ps curl wget nc ssh scp osascript pbpaste tee dd xargs python2
"""


def test_there_are_145_names_in_eleven_groups_and_none_twice() -> None:
    assert len(NAMES) == len(set(NAMES)) == 145
    assert len(GROUPS) == 11


def test_the_names_that_the_seed_asks_for_are_denied_and_python3_is_not() -> None:
    assert not set(ASKED_FOR.split()) - set(NAMES)
    assert "python3" not in NAMES


def test_the_list_is_one_argument_of_deny_rules() -> None:
    rules = DENYLIST.split(",")
    assert len(rules) == 145
    assert all(re.fullmatch(r"Bash\([A-Za-z0-9-]+:\*\)", rule) for rule in rules)
