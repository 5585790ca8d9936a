"""A real classic group whose members come again by the consumer protocol: forecast, then watched."""

from dataclasses import replace

import pytest

from planner.simulation.dynamics import forecast
from tests.clusters.kafka import CLIENT, KafkaCluster
from tests.conformance.kafka import changes
from tests.conformance.kafka.cells import Case
from tests.conformance.kafka.coordinator import ends, look
from tests.conformance.kafka.group import Group
from tests.conformance.kafka.matrix import conversions
from tests.conformance.kafka.requests import request
from tests.conformance.kafka.stage import BROKER_SETTINGS, await_true, stage
from tests.conformance.record import Record
from tests.conformance.report import Compared, compare

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1_200)]

INTERVAL_S = 6
DELIVERED_S = 240.0
DRAWS = 500


@pytest.fixture(scope="module")
def watched() -> tuple[Group, Compared, set[str]]:
    """The group after its roll, the roll beside its forecast, and who owns partitions in the end."""
    plain = next(cell for cell in conversions() if cell.kind == "strategy")
    case = Case(replace(plain, change={**plain.change, "interval_s": INTERVAL_S}), 0)
    with KafkaCluster.start(settings=BROKER_SETTINGS) as cluster, stage(cluster, CLIENT, with_victims=False) as on:
        group = Group(case, on)
        group.start()
        before = group.look()
        group.await_settled(changes.make(group, None))
        compared = compare(Record(case.id, "kafka", request(group, before, cluster.version), group.observed(), {}))
        group.end_producers()
        await_true("delivery of every record", lambda: _is_delivered(group), DELIVERED_S)
        picture = look(cluster, group.name)
        group.end()
        vars(cluster).pop("admin", None)  # it would wait for ever for a broker that has stopped
    assert picture is not None
    return group, compared, {picture.ids[name] for name in picture.owners.values()}


def _is_delivered(group: Group) -> bool:
    due = ends(group.stage.cluster, group.topic, group.partitions)
    seen = {(one.partition, one.offset) for one in group.stage.deliveries(group.topic)}
    return len(seen) == sum(due)


def test_partitions_move_as_forecast_and_none_is_without_an_owner(watched: tuple[Group, Compared, set[str]]) -> None:
    """Ids that nobody knows beforehand decide which move: one draw in twenty lies outside of the forecast's interval.

    What was seen is held against all that the forecast drew.
    """
    _, compared, _ = watched
    drawn = [forecast({**compared.record.request, "trials": 1, "seed": seed}) for seed in range(DRAWS)]
    may_move = {tuple(partition) for one in drawn for partition in one["moved"]}
    seen = {tuple(partition) for partition in compared.record.observed["moved"]}
    assert seen <= may_move, compared.answer
    assert len(seen) in {one["total"]["moved_queues"]["p50"] for one in drawn}, (seen, compared.answer)


def test_every_owner_has_come_by_the_consumer_protocol(watched: tuple[Group, Compared, set[str]]) -> None:
    """Its members make up ids of their own; classic ones begin with the name of the client."""
    group, _, owners = watched
    assert len(owners) == len(group.members)
    assert not [one for one in owners if one.startswith(group.name)]


def test_nothing_comes_twice_where_the_forecast_says_so(watched: tuple[Group, Compared, set[str]]) -> None:
    _, compared, _ = watched
    seen, expected = compared.record.observed["total"]["duplicates"], compared.answer["total"]["duplicates"]
    assert (seen, expected["p95"]) == (0, 0)
