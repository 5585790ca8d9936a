"""Real groups whose members come again by the other protocol: forecast, then watched, all at once on one broker."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupType

from planner.documents.forecast import forecast
from tests.clusters.kafka import CLIENT, REQUEST_S, KafkaCluster
from tests.clusters.kafka_load import LIBRDKAFKA
from tests.conformance.kafka import changes
from tests.conformance.kafka.cells import Case, Cell
from tests.conformance.kafka.coordinator import ends, look
from tests.conformance.kafka.group import Group
from tests.conformance.kafka.matrix import conversions
from tests.conformance.kafka.requests import request
from tests.conformance.kafka.stage import BROKER_SETTINGS, await_true, stage
from tests.conformance.record import Record
from tests.conformance.report import Compared, compare

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1_200)]

INTERVAL_S = 6
HASTY_S = 1.3
"""Less than between two heartbeats, more than between two targets: the last one leaves before all have heard."""
DELIVERED_S = 600.0
DRAWS = 500


def _rolls() -> Iterator[tuple[str, Cell]]:
    """Yield what is watched: its name, and the group with its change."""
    found = next(cell for cell in conversions() if cell.kind == "strategy")
    plain = replace(found, change={**found.change, "interval_s": INTERVAL_S})
    yield "dynamic", plain
    yield "static", replace(plain, is_static=True)
    yield "librdkafka", replace(plain, client=LIBRDKAFKA)
    yield "back", replace(plain, assignor="uniform", change={**plain.change, "to": "range"})
    cooperative = {**plain.change, "to": "cooperative-sticky"}
    librdkafka = replace(plain, client=LIBRDKAFKA, assignor="uniform", change=cooperative)
    yield "librdkafka back", librdkafka
    yield "librdkafka back in haste", replace(librdkafka, change={**cooperative, "interval_s": HASTY_S})


ROLLS = dict(_rolls())
every_roll = pytest.mark.parametrize("name", ROLLS)


@dataclass(frozen=True, slots=True)
class Watched:
    """A roll beside its forecast, the type of its group in the end, and the ids of who owns partitions then."""

    group: Group
    compared: Compared
    type: ConsumerGroupType
    owners: frozenset[str]


@pytest.fixture(scope="module")
def watched() -> Mapping[str, Watched]:
    with ExitStack() as stack:
        cluster = stack.enter_context(KafkaCluster.start(settings=BROKER_SETTINGS))
        stages = {one: stack.enter_context(stage(cluster, one, with_victims=False)) for one in (CLIENT, LIBRDKAFKA)}
        groups = [Group(Case(cell, 0), stages[cell.client]) for cell in ROLLS.values()]
        with ThreadPoolExecutor(len(groups)) as pool:
            found = dict(zip(ROLLS, pool.map(_watch, groups), strict=True))
        vars(cluster).pop("admin", None)  # it would wait for ever for a broker that has stopped
    return found


@pytest.fixture(scope="module")
def drawn(watched: Mapping[str, Watched]) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Forecasts of one trial each: one roll in ten may lie outside of an interval of 90 %, none outside of all."""
    requests = {name: one.compared.record.request for name, one in watched.items()}
    return {
        name: [forecast({**request, "trials": 1, "seed": seed}) for seed in range(DRAWS)]
        for name, request in requests.items()
    }


def _watch(group: Group) -> Watched:
    """Roll a group and return what became of it, when all its records have been delivered."""
    cluster = group.stage.cluster
    group.start()
    before = group.look()
    group.await_settled(changes.make(group, None))
    compared = compare(Record(group.case.id, "kafka", request(group, before, cluster.version), group.observed(), {}))
    group.end_producers()
    await_true("delivery of every record", lambda: _is_delivered(group), DELIVERED_S)
    picture = look(cluster, group.name)
    told = cluster.admin.describe_consumer_groups([group.name])[group.name].result(REQUEST_S)
    group.end()
    assert picture is not None
    return Watched(group, compared, told.type, frozenset(picture.ids[name] for name in picture.owners.values()))


def _is_delivered(group: Group) -> bool:
    due = ends(group.stage.cluster, group.topic, group.partitions)
    seen = {(one.partition, one.offset) for one in group.stage.deliveries(group.topic)}
    return len(seen) == sum(due)


@every_roll
def test_partitions_move_as_forecast_and_none_is_without_an_owner(
    watched: Mapping[str, Watched], drawn: Mapping[str, Sequence[Mapping[str, Any]]], name: str
) -> None:
    """Ids that nobody knows beforehand decide which move."""
    compared = watched[name].compared
    may_move = {tuple(partition) for one in drawn[name] for partition in one["moved"]}
    seen = {tuple(partition) for partition in compared.record.observed["moved"]}
    assert seen <= may_move, compared.answer
    assert len(seen) in {one["total"]["moved_queues"]["p50"] for one in drawn[name]}, (seen, compared.answer)


@every_roll
def test_the_group_is_of_the_protocol_by_which_every_owner_has_come(watched: Mapping[str, Watched], name: str) -> None:
    """Members of the consumer protocol make their ids up; the broker begins those of a classic group with their names.

    Only the last one to come back by the classic protocol has such an id: the others came before it was a classic one.
    """
    found = watched[name]
    is_back = found.group.cell.is_server_side
    named = [one for one in found.owners if one.startswith(found.group.name)]
    assert found.type == (ConsumerGroupType.CLASSIC if is_back else ConsumerGroupType.CONSUMER)
    assert (len(found.owners), len(named)) == (len(found.group.members), 1 if is_back else 0)


def test_static_members_own_what_they_had_by_ids_of_their_own(watched: Mapping[str, Watched]) -> None:
    observed = watched["static"].compared.record.observed
    assert (observed["moved"], observed["total"]["moved_queues"]) == ([], 0)


@pytest.mark.parametrize("name", ["dynamic", "static", "librdkafka"])
def test_nothing_comes_twice_on_the_way_to_the_consumer_protocol(watched: Mapping[str, Watched], name: str) -> None:
    compared = watched[name].compared
    seen, expected = compared.record.observed["total"]["duplicates"], compared.answer["total"]["duplicates"]
    assert (seen, expected["p95"]) == (0, 0)


@pytest.mark.parametrize("name", ["back", "librdkafka back", "librdkafka back in haste"])
def test_what_members_behind_the_last_epoch_deliver_twice_is_forecast(
    watched: Mapping[str, Watched], drawn: Mapping[str, Sequence[Mapping[str, Any]]], name: str
) -> None:
    """``ILLEGAL_GENERATION``: a heartbeat of 3 s has told all of the last target, or it has not."""
    seen = watched[name].compared.record.observed["total"]["duplicates"]
    may_come_twice = [one["total"]["duplicates"]["p50"] for one in drawn[name]]
    assert min(may_come_twice) <= seen <= max(may_come_twice)
