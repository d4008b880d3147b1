"""The matrix of dialects over real HTTP: names, version, where it stands, blocking or not, send or stream.

The rule that every cell follows: the version is the header's or, where that says nothing, the query
parameter's; none means 0.3. A version is one to three numbers with dots between them, and its first number
decides: 0 goes with the names of 0.3, 1 with those of 1.0. What does not go together is -32009 and runs
nothing; what does is answered in the dialect of its names.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

VERSIONS = (None, "", "0.3", "0.3.0", "1.0", "1.7", "0.9", "2.0", "10.3", "v1.0", "1.0, 0.3", "latest")
METHODS = {
    ("0.3", "send"): "message/send",
    ("0.3", "stream"): "message/stream",
    ("1.0", "send"): "SendMessage",
    ("1.0", "stream"): "SendStreamingMessage",
}
OTHER = {None: "1.0", "": "1.0", "0.3": "1.0", "1.0": "0.3"}  # what the query says beside a header

# Which of VERSIONS go with the names of a dialect, by where they stand.
OLD: list[str | None] = [None, "", "0.3", "0.3.0", "0.9"]
NEW: list[str | None] = ["1.0", "1.7"]
ACCEPTED: dict[tuple[str, str], list[str | None]] = {
    ("0.3", "header"): OLD,
    ("0.3", "query"): OLD,
    ("0.3", "both"): OLD,
    ("0.3", "query-differs"): ["0.3", "0.3.0", "0.9"],
    ("1.0", "header"): NEW,
    ("1.0", "query"): NEW,
    ("1.0", "both"): NEW,
    ("1.0", "query-differs"): [None, "", "1.0", "1.7"],
}


def states(events: list[dict[str, Any]]) -> list[str]:
    found = []
    for event in events:
        result = event["result"]
        task = result.get("task") or result.get("statusUpdate") or result
        if "status" in task:
            found.append(task["status"]["state"])
    return found


def name_of(state: str, names: str) -> str:
    return state if names == "0.3" else f"TASK_STATE_{state.upper()}"


@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "at-once"])
@pytest.mark.parametrize("kind", ["send", "stream"])
@pytest.mark.parametrize("where", ["header", "query", "both", "query-differs"])
@pytest.mark.parametrize("names", ["0.3", "1.0"])
async def test_each_cell_of_the_matrix_is_what_the_rule_says(
    front: Any, kit: Any, names: str, where: str, kind: str, blocking: bool
) -> None:
    for version in VERSIONS:
        header = version if where != "query" else None
        query = {"header": None, "query": version, "both": version}.get(where, OTHER.get(version, "2.0"))
        old = names == "0.3"
        configuration = {"blocking": blocking} if old else {"returnImmediately": not blocking}
        params = (kit.message03 if old else kit.message10)("hi", configuration=configuration)
        answer = await front.http.post(
            "/",
            json={"jsonrpc": "2.0", "id": 1, "method": METHODS[names, kind], "params": params},
            headers={} if header is None else {"A2A-Version": header},
            params={} if query is None else {"A2A-Version": query},
        )
        cell = (version, query, answer.text)
        assert answer.status_code == 200, cell
        if version not in ACCEPTED[names, where]:
            assert answer.json()["error"]["code"] == -32009, cell
            continue
        if kind == "stream":
            assert answer.headers["content-type"].startswith("text/event-stream"), cell
            lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
            seen = states([json.loads(line[6:]) for line in lines])
            assert (seen[0], seen[-1]) == (name_of("submitted", names), name_of("completed", names)), cell
            continue
        result = answer.json()["result"]
        task = result if old else result["task"]
        assert ("kind" in task) is old, cell
        first = {"completed"} if blocking else {"submitted", "working", "completed"}
        assert task["status"]["state"] in {name_of(state, names) for state in first}, cell
    ran = len(front.runner.plans)
    if blocking or kind == "stream":
        assert ran == len(ACCEPTED[names, where]), "what was refused has run"
    else:
        assert ran <= len(ACCEPTED[names, where]), "the last may not have begun yet"


async def test_a_message_that_waits_for_nothing_is_answered_all_the_same(front: Any, kit: Any) -> None:
    sent = kit.message10("later", configuration={"returnImmediately": True})
    task = (await front.rpc("SendMessage", sent, version="1.0"))["result"]["task"]
    if task["status"]["state"] != "TASK_STATE_COMPLETED":
        reading = front.events("SubscribeToTask", {"id": task["id"]}, version="1.0")
        async for event in reading:
            if "error" in event:
                break
    after = (await front.rpc("GetTask", {"id": task["id"]}, version="1.0"))["result"]
    assert kit.texts(after) == ("echo: later", "echo: later")


@pytest.mark.parametrize(
    "query", ["a2a-version=1.0", "A2A-Version=", "x=1&" * 80 + "A2A-Version=1.0", "%ff=%00"]
)
async def test_a_query_that_names_no_version_is_none(front: Any, kit: Any, query: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": kit.message03("hi")}
    answer = await front.http.post(f"/?{query}", json=body)
    assert answer.json()["result"]["status"]["state"] == "completed"


async def test_of_two_version_headers_the_first_counts(front: Any, kit: Any) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": kit.message10("hi")}
    for first, second, right in (("1.0", "0.3", True), ("0.3", "1.0", False)):
        headers = [("A2A-Version", first), ("A2A-Version", second)]
        answer = (await front.http.post("/", json=body, headers=headers)).json()
        assert ("result" in answer) is right
