"""Real clients whose ids decide who owns what: what was drawn for them before they ran, and what came of it.

The many transitions that the intervals were judged by are recorded by ``tests/conformance/client_ids.py``; here a few
with fixed ids show that clients, brokers and planner still agree.
"""

from collections.abc import Callable

import pytest

from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.conformance.client_ids import Case, run_wave

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

TOPIC = "client-ids"
CASES = tuple(
    Case(
        group=f"client-ids-{number}",
        strategy=strategy,
        topic=TOPIC,
        present=("10.1.1.17", "10.1.2.9", "10.2.1.40"),
        coming=("10.1.3.8", "10.2.2.77"),
        instance="1#71833902193345",
    )
    for number, strategy in enumerate(("CONSISTENT_HASH", "MACHINE_ROOM_NEARBY-AVG"))
)


def test_groups_own_what_was_drawn_for_them(rocketmq_cluster: Callable[[str], RocketMQCluster]) -> None:
    """Red where the draws are of another form than real ids, or a leave of known members is not exact."""
    cluster = rocketmq_cluster(NEW)
    cluster.create_topic(TOPIC, 8)
    transitions = list(run_wave(cluster, CASES))
    assert [(one.strategy, one.kind) for one in transitions] == [
        (case.strategy, kind) for kind in ("up", "down") for case in CASES
    ]
    for one in transitions:
        assert one.is_moved_inside, one
        assert one.is_busiest_inside, one
        assert (one.kind == "down") == (one.moved_low == one.moved_high), one
