"""The answer contract as a visitor's client sees it: what holds of every task and stream, whatever ended it.

The texts are compared as they are, part by part: the first one is the answer, and what may follow it is a
notice of ours, marked as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

COMPLETED: Final = "completed"
ENDED: Final = frozenset({COMPLETED, "canceled", "failed"})


@dataclass(frozen=True, slots=True)
class Told:
    """What a visitor was told: the one text, its outcome ("" for the model's answer), the task's state."""

    text: str
    outcome: str
    state: str


def of_task(task: dict[str, Any]) -> Told:
    """Return what a task of the 0.3 dialect tells that has ended."""
    status = task["status"]
    told = _told(status)
    artifacts = task.get("artifacts") or []
    if told.state == COMPLETED:
        (artifact,) = artifacts
        _same(artifact, status["message"])
    return told


def of_stream(events: list[dict[str, Any]]) -> Told:
    """Return what a whole stream tells: the task, what is done, then one text, once, and nothing more."""
    first, *others = events
    assert first["kind"] == "task", events
    assert first["status"]["state"] == "submitted", events
    (last,) = [event for event in others if event.get("final")]
    assert last is others[-1], events
    told = _told(last["status"])
    states = [event["status"]["state"] for event in others[:-1] if event["kind"] == "status-update"]
    assert set(states) <= {"working"}, events
    shown = [event for event in others if event["kind"] == "artifact-update"]
    assert len({event["artifact"]["artifactId"] for event in shown}) <= 1, events
    assert not any(event.get("append") for event in shown), events
    whole = [event for event in shown if event.get("lastChunk")]
    if told.state == COMPLETED:
        assert whole == [others[-2]], events
        _same(whole[0]["artifact"], last["status"]["message"])
    else:
        assert whole == [], events
    return told


def snapshots(events: list[dict[str, Any]]) -> list[str]:
    """Return the texts that a stream showed before its last one."""
    shown = [event for event in events if event["kind"] == "artifact-update" and not event.get("lastChunk")]
    return [event["artifact"]["parts"][0]["text"] for event in shown]


def _told(status: dict[str, Any]) -> Told:
    assert status["state"] in ENDED, status
    message = status["message"]
    text, *notices = message["parts"]
    assert text["text"].strip(), status
    assert all(one["metadata"]["gatehouse"] == {"kind": "notice"} for one in notices), status
    return Told(text["text"], _outcome(message), status["state"])


def _same(artifact: dict[str, Any], message: dict[str, Any]) -> None:
    assert [part["text"] for part in artifact["parts"]] == [part["text"] for part in message["parts"]]
    assert _outcome(artifact) == _outcome(message)


def _outcome(said: dict[str, Any]) -> str:
    return str((said.get("metadata") or {}).get("gatehouse", {}).get("outcome", ""))
