"""Makes the AgentDefinition of checked settings and a prompt: the one step after everything was right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.agents.definition import (
    AgentDefinition,
    Card,
    Grounding,
    Limits,
    Messages,
    Network,
    Provider,
    Security,
    Skill,
    Tools,
)
from runtime.agents.fields import DEVELOPMENT, ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def assemble(
    name: str,
    found: Mapping[str, Any],
    persona: str,
    grounding: Grounding,
    tools: Tools,
    tools_dir: Path,
    environ: Mapping[str, str],
) -> AgentDefinition:
    """Return the agent `name`. `found` holds every setting that was given or has a default, checked.

    The card has the skills without their `tools`: those are for the check of the card, and not for visitors.
    """
    development = environ.get(ENVIRONMENT, "").strip().lower() in DEVELOPMENT
    origins = found["cors_origins"] + (found["cors_dev_origins"] if development else ())
    host, port = found["host"], found["port"]
    authority = f"[{host}]" if ":" in host else host
    provider = found.get("provider")
    return AgentDefinition(
        id=name,
        card=Card(
            name=found.get("name", name),
            description=found["description"],
            version=found["version"],
            public_url=found.get("public_url", f"http://{authority}:{port}").rstrip("/"),
            provider=Provider(**provider) if provider else None,
            documentation_url=found.get("documentation_url", ""),
            icon_url=found.get("icon_url", ""),
            skills=tuple(_skill(skill) for skill in found.get("skills", ())),
        ),
        persona=persona,
        grounding=grounding,
        tools=tools,
        tools_dir=tools_dir,
        model=found["model"],
        limits=Limits(
            timeout_seconds=found["timeout"],
            max_concurrency=found["max_concurrency"],
            max_input_chars=found["max_input_chars"],
            max_turns=found["max_turns"],
            max_contexts=found["max_contexts"],
            on_disconnect=found["on_disconnect"],
            disconnect_grace_seconds=found["disconnect_grace"],
        ),
        messages=Messages(**found.get("messages", {})),
        network=Network(host=host, port=port, cors_origins=tuple(dict.fromkeys(origins))),
        security=Security(found.get("security_contact", ""), found.get("security_policy", "")),
        binary=found["binary"],
    )


def _skill(given: Mapping[str, Any]) -> Skill:
    values = {"name": given["id"], **given}
    values.pop("tools", None)
    return Skill(**values)
