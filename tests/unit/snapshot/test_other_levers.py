"""Kafka groups that look like plain consumers and are not: told by evidence that no plain consumer gives."""

from dataclasses import replace

import pytest

from planner.decision.decision import HoldCause
from planner.decision.hold_reasons import first_reason_to_hold
from planner.snapshot.other_levers import kafka_lever
from tests.builders import AT, OBJECTIVE, kafka_snapshot

SINKS = ("connector-consumer-pay-sink-0", "connector-consumer-pay-sink-11")


@pytest.mark.parametrize(
    ("assignor", "client_ids", "kind", "lever"),
    [
        ("stream", ("app-StreamThread-1-consumer",), "a Kafka Streams application", "num.stream.threads"),
        ("range", SINKS, "tasks of a Kafka Connect sink", "tasks.max of connector pay-sink"),
    ],
)
def test_a_group_with_another_lever_is_named_with_evidence_and_lever(
    assignor: str, client_ids: tuple[str, ...], kind: str, lever: str
) -> None:
    found = kafka_lever(assignor, client_ids)
    assert found is not None
    assert found.sentence.startswith(f"{kind} ({found.evidence}): ")
    assert lever in found.lever


@pytest.mark.parametrize(
    ("assignor", "client_ids"),
    [
        ("range", ()),
        ("range", (*SINKS, "orders-0")),
        ("range", ("connect-0", "connector-consumer-0")),
        ("sticky", ("app-StreamThread-1-consumer",)),
        (None, ("stream",)),
    ],
)
def test_names_alone_make_no_other_kind_of_group(assignor: str | None, client_ids: tuple[str, ...]) -> None:
    assert kafka_lever(assignor, client_ids) is None


@pytest.mark.parametrize("assignor", ["stream", "range"])
def test_the_decision_holds_whatever_else_is_unknown(assignor: str) -> None:
    taken = kafka_snapshot()
    members = tuple(
        replace(member, client_id=f"connector-consumer-pay-sink-{number}" if assignor == "range" else member.client_id)
        for number, member in enumerate(taken.members)
    )
    reason = first_reason_to_hold(replace(taken, strategy=assignor, members=members, capacity=None), OBJECTIVE, AT)
    assert reason is not None
    assert reason[0] is HoldCause.OTHER_LEVER
