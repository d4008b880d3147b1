"""The official Python client, 1.3: finds the card, gets the answer, reads the task back."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.helpers import get_artifact_text, new_text_message
from a2a.types import GetTaskRequest, Role, SendMessageRequest, TaskState


@pytest.mark.parametrize("streaming", [True, False])
async def test_the_official_client_gets_the_answer_and_reads_the_task_back(kit: Any, streaming: bool) -> None:
    async with (
        kit.serving(kit.Runner(), kit.definition(), own_url=True) as front,
        httpx.AsyncClient(trust_env=False) as http,
    ):
        config = ClientConfig(streaming=streaming, httpx_client=http)
        client = await create_client(front.url, config)
        request = SendMessageRequest(message=new_text_message("grüße", role=Role.ROLE_USER))
        events = [event async for event in client.send_message(request)]
        first = events[0].task
        task = await client.get_task(GetTaskRequest(id=first.id))
        assert task.status.state == TaskState.TASK_STATE_COMPLETED
        notice = kit.definition().messages.notice
        assert get_artifact_text(task.artifacts[0]).splitlines() == ["echo: grüße", notice]
        assert len(events) == (4 if streaming else 1)
