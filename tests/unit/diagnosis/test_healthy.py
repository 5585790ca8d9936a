"""Healthy groups of several shapes have no finding at all."""

import pytest

from planner.diagnosis.diagnose import diagnose
from planner.diagnosis.group_evidence import GroupEvidence
from tests.sample_builders import steady
from tests.unit.diagnosis.patients import healthy, kafka

SHAPES = {
    "busy": healthy(),
    "caught up, nothing comes": healthy(offsets=steady(0, 0)),
    "empty": healthy(offsets=lambda _queue, _number: (0, 0)),
    "one member": healthy(clients=("c1",)),
    "one member for each queue": healthy(topics={"orders": 1}),
    "in order": healthy(orderly=True),
    "five queues for four": healthy(topics={"orders": 3}, clients=("c1", "c2", "c3", "c4")),
    "several topics, even": healthy(topics={"orders": 2, "payments": 2}, clients=("c1", "c2")),
    "just started": healthy(started_s_ago=-10.0),
    "one look": healthy(looks=1),
    "two looks, a second apart": healthy(looks=2, every_s=1.0),
    "a small steady lag": healthy(offsets=lambda _queue, number: (1000 + 50 * number, 990 + 50 * number)),
    "a draining backlog": healthy(offsets=lambda _queue, number: (9000 + 10 * number, 8000 + 100 * number)),
    "Kafka": kafka(),
    "Kafka, cooperative and large": kafka(members=12, partitions=24, assignor="cooperative-sticky"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_is_found(shape: str) -> None:
    picture: GroupEvidence = SHAPES[shape]
    assert diagnose(picture) == ()
