"""What a service that was taken over can do to the others through the folders they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.harness.stack import answer_of

if TYPE_CHECKING:
    from tests.harness.stack import Stack

pytestmark = pytest.mark.engine

REPLACE = """
import os, socket, sys
path = sys.argv[1]
outcomes = []
for attempt in (
    lambda: os.unlink(path),
    lambda: os.rename(path, path + ".moved"),
    lambda: socket.socket(socket.AF_UNIX).bind(path + ".own"),
    lambda: os.mkdir(path + ".folder"),
):
    try:
        attempt()
        outcomes.append("done")
    except OSError as error:
        outcomes.append(os.strerror(error.errno))
with socket.socket(socket.AF_UNIX) as client:
    client.connect(path)
    outcomes.append("connected")
print("; ".join(outcomes))
"""


@pytest.mark.control("SPAWN-02", "STACK-01")
@pytest.mark.parametrize(
    ("service", "path"),
    [
        ("front", "/run/gatehouse/spawn/spawn.sock"),
        ("ingress", "/run/gatehouse/front-local/local.sock"),
        ("spawner", "/run/gatehouse/ctl-model/control.sock"),
    ],
)
def test_a_service_reaches_another_s_socket_and_cannot_take_its_place(
    stack: Stack, service: str, path: str
) -> None:
    outcomes = stack.python(service, REPLACE, path).strip().split("; ")
    assert outcomes == ["Read-only file system"] * 4 + ["connected"]


@pytest.mark.control("SPAWN-02")
def test_twin_the_owner_of_the_folder_can(stack: Stack) -> None:
    program = "import os; os.mkdir('/run/gatehouse/spawn/twin'); os.rmdir('/run/gatehouse/spawn/twin')"
    stack.python("spawner", program + "; print('done')")
    assert (
        stack.python("spawner", "import os; print(os.path.exists('/run/gatehouse/spawn/twin'))") == "False\n"
    )


@pytest.mark.control("ADDR-01")
def test_the_ingress_does_not_see_the_tunnel_s_socket(stack: Stack) -> None:
    program = (
        "import os; print(sorted(os.listdir('/run/gatehouse')), os.listdir('/run/gatehouse/front-local'))"
    )
    assert stack.python("ingress", program) == "['front-local'] ['local.sock']\n"
    assert answer_of(stack.ask(f"Still there? {stack.script({'text': 'Yes.'})}")).startswith("Yes.")
