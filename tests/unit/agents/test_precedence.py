"""Which of three places wins for a setting: a flag beats the environment, which beats the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from runtime import server
from runtime.agents.instance import load_instance
from runtime.errors import PortInUse

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Collect what the front would listen on, and stop there."""
    asked: list[tuple[str, int]] = []

    def listen(host: str, port: int) -> NoReturn:
        asked.append((host, port))
        raise PortInUse("taken", "stop here")

    monkeypatch.setattr(server, "listen_tcp", listen)
    return asked


@pytest.mark.parametrize(
    ("environ", "flags", "expected"),
    [
        ({}, (), ("127.0.0.2", 9001)),
        ({"AGENT_HOST": "127.0.0.3"}, (), ("127.0.0.3", 9001)),
        ({"AGENT_PORT": "9003"}, (), ("127.0.0.2", 9003)),
        ({"AGENT_PORT": " "}, (), ("127.0.0.2", 9001)),
        ({"AGENT_HOST": "127.0.0.3", "AGENT_PORT": "9003"}, ("--port", "9004"), ("127.0.0.3", 9004)),
        ({"AGENT_HOST": "127.0.0.3", "AGENT_PORT": "9003"}, ("--host", "127.0.0.4"), ("127.0.0.4", 9003)),
        ({}, ("--host", "127.0.0.4", "--port", "9004"), ("127.0.0.4", 9004)),
    ],
)
def test_host_and_port_come_from_flag_then_variable_then_file(
    root: Path,
    bound: list[tuple[str, int]],
    environ: dict[str, str],
    flags: tuple[str, ...],
    expected: tuple[str, int],
) -> None:
    agent_file = root / "instances/good/agent.yaml"
    agent_file.write_text("grounding_dir: docs\nhost: 127.0.0.2\nport: 9001\n")
    options = server.arguments(["--agent", "good", "--root", str(root), *flags])
    with pytest.raises(PortInUse):
        server.run(options, environ)
    assert bound == [expected]


@pytest.mark.parametrize(
    ("key", "in_file", "variable", "given", "attribute"),
    [
        ("host", "127.0.0.2", "AGENT_HOST", "127.0.0.3", "network.host"),
        ("port", "9001", "AGENT_PORT", "9003", "network.port"),
        ("public_url", "https://a.example", "PUBLIC_AGENT_URL", "https://b.example", "card.public_url"),
        ("model", "haiku", "CLAUDE_MODEL", "opus", "model"),
        ("binary", "one", "CLAUDE_BINARY", "two", "binary"),
        (
            "cors_origins",
            "[https://a.example]",
            "CORS_ALLOWED_ORIGINS",
            "https://b.example",
            "network.cors_origins",
        ),
    ],
)
def test_a_variable_beats_the_file(
    root: Path, key: str, in_file: str, variable: str, given: str, attribute: str
) -> None:
    agent_file = root / "instances/good/agent.yaml"
    agent_file.write_text(f"grounding_dir: docs\n{key}: {in_file}\n")
    for environ, expected in (({}, in_file.strip("[]")), ({variable: given}, given)):
        value: object = load_instance(root, "good", environ)
        for name in attribute.split("."):
            value = getattr(value, name)
        assert str(value[0] if isinstance(value, tuple) else value) == expected


def test_the_default_address_on_the_card_follows_every_override(root: Path) -> None:
    agent = load_instance(root, "good", {"AGENT_HOST": "127.0.0.3", "AGENT_PORT": "9003"})
    assert agent.card.public_url == "http://127.0.0.3:9003"
