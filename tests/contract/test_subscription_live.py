"""Real groups whose members come back with other topics or tags one by one: owners, unread queues, filtered messages.

All other cases, and how long queues were unread beside the forecasts, are in ``tests/conformance/subscription``.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.clusters.kafka import KafkaCluster
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.conformance.subscription.cases import KAFKA, RATE, ROCKETMQ, STEP_S, Outcome, owners_agree
from tests.conformance.subscription.kafka import watch_kafka
from tests.conformance.subscription.rocketmq import watch_rocketmq

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

SWAP, ADD, PATTERN = "range-swaps", "roundrobin-adds", "uniform-pattern"
TAGS, TOPIC = "tags-wider", "topic-added"
Outcomes = dict[str, Outcome]


@pytest.fixture(scope="module")
def outcomes(kafka_cluster: KafkaCluster, rocketmq_cluster: Callable[[str], RocketMQCluster]) -> Outcomes:
    """What was seen of both systems' groups, which run side by side: each waits most of the time."""
    of_kafka = [case for case in KAFKA if case.name in (SWAP, ADD, PATTERN)]
    of_rocketmq = [case for case in ROCKETMQ if case.name in (TAGS, TOPIC)]
    rocketmq = rocketmq_cluster(NEW)
    with ThreadPoolExecutor(2) as pool:
        watches = pool.submit(watch_kafka, kafka_cluster, of_kafka), pool.submit(watch_rocketmq, rocketmq, of_rocketmq)
        return {outcome.name: outcome for watch in watches for outcome in watch.result()}


@pytest.mark.parametrize("name", [SWAP, ADD, TAGS, TOPIC])
def test_after_each_step_members_own_what_the_forecast_says(outcomes: Outcomes, name: str) -> None:
    assert all(owners_agree(outcomes[name]))


def test_a_new_topic_of_kafka_is_read_from_its_first_record(outcomes: Outcomes) -> None:
    for name, queues in ((SWAP, 4), (ADD, 4), (PATTERN, 4)):
        offsets: dict[object, set[int]] = {}
        for read in outcomes[name].reads:
            if str(read.queue[0]).endswith(".b"):
                offsets.setdefault(read.queue, set()).add(read.offset)
        assert len(offsets) == queues, name
        assert all(found == set(range(max(found) + 1)) for found in offsets.values()), name


def test_nobody_reads_a_topic_that_all_members_have_given_up(outcomes: Outcomes) -> None:
    swapped = outcomes[SWAP]
    last = max(read.at_s for read in swapped.reads if str(read.queue[0]).endswith(".a"))
    assert [owner for owner in swapped.owners[-1] if str(owner[0]).endswith(".a")] == []
    assert any(read.at_s > last for read in swapped.reads)


def test_queues_of_clients_that_do_not_subscribe_are_unread_until_they_do(outcomes: Outcomes) -> None:
    """RocketMQ gives half of the new topic's queues to the client that has not come back yet."""
    outcome = outcomes[TOPIC]
    first, last = outcome.answer()["subscription"]["steps"]
    assert len(first["unread"]) == 2
    assert last["unread"] == []
    unread = {tuple(queue) for queue in first["unread"]}
    read_at = [read.at_s for read in outcome.reads if read.queue in unread]
    assert read_at
    assert min(read_at) > STEP_S  # not before the last client was told to stop


def test_only_messages_with_a_tag_of_one_side_are_filtered_away(outcomes: Outcomes) -> None:
    counts = outcomes[TAGS].filtered
    assert not [name for name in counts if name.endswith("x lost")]
    assert "before y got" not in counts
    assert "after y lost" not in counts
    (filtered,) = outcomes[TAGS].answer()["subscription"]["filters"]
    assert filtered["tags_at_risk"] == ["y"]
    assert counts.get("mixed y lost", 0) + counts.get("mixed y got", 0) > 0
    assert counts.get("mixed y lost", 0) <= filtered["filtered_at_most"]["p95"] + RATE


def test_brokers_keep_one_subscription_of_a_mixed_group_and_change_it(outcomes: Outcomes) -> None:
    assert {"a: x", "a: x || y"} >= set(outcomes[TAGS].winners)
    assert set(outcomes[TOPIC].winners) == {"a: *", "a: *, b: *"}
