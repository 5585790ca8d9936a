"""Changes of living groups on real brokers: what moves, who owns what, what is lost, and how well times are forecast.

Nothing is tried again until it fits. Which queues move, who owns them in the end and that every message is delivered
is asserted of each change. Pauses, and duplicates, are judged for all changes of a system together: an interval of 90 %
may miss any of them.
"""

from collections.abc import Callable

import pytest

from tests.conformance.live import kafka, rocketmq
from tests.conformance.live.bound import least_covered
from tests.conformance.live.transition import JUDGED, Transition, Watch, judged
from tests.conformance.measure import owners_of
from tests.conftest import TOLD

pytestmark = pytest.mark.cluster

ROCKETMQ_GROUPS = (*rocketmq.AT_ONCE, rocketmq.ALONE)
KAFKA_GROUPS = (*kafka.CALM, *kafka.KILLED)
TRANSITIONS = [
    *(name for series in ROCKETMQ_GROUPS for name in rocketmq.names(series)),
    *(kafka.name(cell) for cell in KAFKA_GROUPS),
]
GROUPS = [*(rocketmq.group_name(series) for series in ROCKETMQ_GROUPS), *(kafka.name(cell) for cell in KAFKA_GROUPS)]


def transition(watch: Watch, name: str) -> Transition:
    """The transition of that name; what kept it from being seen is raised."""
    found = watch.transitions[name]
    if isinstance(found, Exception):
        raise found
    return found


@pytest.mark.parametrize("name", TRANSITIONS)
def test_exactly_the_forecast_queues_move(live_transitions: Watch, name: str) -> None:
    compared = transition(live_transitions, name).compared
    assert compared.is_moved_right, (compared.record.observed["moved"], compared.answer["moved"])


@pytest.mark.parametrize("name", TRANSITIONS)
def test_every_queue_ends_with_the_forecast_owner(live_transitions: Watch, name: str) -> None:
    seen = transition(live_transitions, name)
    assert seen.owners == owners_of(seen.compared.answer["after"])


@pytest.mark.parametrize("name", TRANSITIONS)
def test_what_is_seen_is_told_beside_its_forecast(
    live_transitions: Watch, name: str, record_property: Callable[[str, object], None]
) -> None:
    lines = list(transition(live_transitions, name).lines())
    assert len(lines) == len(JUDGED)
    for line in lines:
        record_property(TOLD, line)


@pytest.mark.parametrize("group", GROUPS)
def test_every_message_is_delivered(live_transitions: Watch, group: str) -> None:
    assert group in live_transitions.lost, "it was not watched to its end"
    assert live_transitions.lost[group] == {}


@pytest.mark.parametrize("measure", JUDGED)
@pytest.mark.parametrize("system", [rocketmq.SYSTEM, kafka.SYSTEM])
def test_what_is_seen_lies_within_the_forecast_as_often_as_it_claims(
    live_transitions: Watch, system: str, measure: str
) -> None:
    points = judged(live_transitions, system, measure)
    covered = [point for point in points if point.is_covered]
    assert len(covered) >= least_covered(len(points)), [
        (point.record.id, point.seen, dict(point.forecast)) for point in points if not point.is_covered
    ]
