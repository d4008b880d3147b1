"""The one line a turn leaves: who, how it ended, what it cost, and none of the words."""

from __future__ import annotations

import json

import structlog
from prometheus_client import CollectorRegistry, generate_latest

from runtime.turn.events import Cause, Usage
from runtime.turn.receipt import ANSWERED, FAILED, Receipt, Receipts
from runtime.turn.screen import Finding


def test_the_line_names_everything_and_holds_no_visitor_text() -> None:
    registry = CollectorRegistry()
    receipts = Receipts("ada", b"k" * 32, registry)
    receipt = Receipt("c" * 32, "v" * 32, "QUESTION of a visitor")
    receipt.outcome, receipt.cause, receipt.answer = ANSWERED, "", "ANSWER of the model"
    receipt.usage = Usage(2, 100, 20, 1, 84_512)
    receipt.total_seconds, receipt.first_text_seconds = 1.2345, 0.4
    receipt.steps["Read"] += 2
    receipt.screened = (Finding("anthropic-key", 1),)
    with structlog.testing.capture_logs() as lines:
        receipts.write(receipt)
    assert len(lines) == 1
    line = lines[0]
    assert "QUESTION" not in json.dumps(line)
    assert "ANSWER of" not in json.dumps(line)
    assert line["event"] == "turn"
    assert line["agent"] == "ada"
    assert (line["context"], line["visitor"]) == ("c" * 32, "v" * 32)
    assert (line["outcome"], line["total_ms"], line["first_text_ms"]) == (ANSWERED, 1234, 400)
    assert (line["requests"], line["input_tokens"], line["output_tokens"], line["refused"]) == (2, 100, 20, 1)
    assert line["request_bytes"] == 84_512
    assert line["steps"] == {"Read": 2}
    assert line["screened"] == {"anthropic-key": 1}
    metrics = generate_latest(registry).decode()
    assert 'gatehouse_turns_total{agent="ada",cause="",outcome="answered"} 1.0' in metrics
    assert 'gatehouse_turn_tokens_total{agent="ada",kind="input"} 100.0' in metrics


def test_the_same_words_have_the_same_mac_under_one_key_only() -> None:
    one, two = (Receipts("ada", key, CollectorRegistry()) for key in (b"a" * 32, b"b" * 32))
    receipt = Receipt("c", "v", "question")
    assert one.fields(receipt)["question"] == one.fields(Receipt("d", "w", "question"))["question"]
    assert one.fields(receipt)["question"] != two.fields(receipt)["question"]
    assert one.fields(receipt)["answer"] == ""


def test_a_receipt_that_nobody_filled_in_is_a_failure_of_ours() -> None:
    fields = Receipts("ada", b"k", CollectorRegistry()).fields(Receipt("c", "v", ""))
    assert (fields["outcome"], fields["cause"]) == (FAILED, Cause.INTERNAL.value)
