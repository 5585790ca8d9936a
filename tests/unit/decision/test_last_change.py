"""``spec.stabilisation``: no plan soon after a change, and none where nobody knows whether there was one."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from planner.decision.decision import Decision, HoldCause
from planner.decision.last_change import known_since, last_change
from planner.model.snapshot import GroupSnapshot, SeriesPoint
from tests.builders import AT, OBJECTIVE, clients, snapshot
from tests.unit.decision.test_decide import decision_on
from tests.unit.rollout.test_victims import in_pods
from tests.unit.workload.builders import pod

RESTED = replace(OBJECTIVE, quiet_s=300.0)


def ago(seconds: float) -> datetime:
    return AT - timedelta(seconds=seconds)


def point(seconds_ago: float, **changes: object) -> SeriesPoint:
    """Return one minute of a group of three that nothing happens to."""
    quiet = SeriesPoint(
        ago(seconds_ago), 60.0, arrival_rate=1.0, consumption_rate=1.0, lag=0, consumers=3, moved=0, is_gap=False
    )
    return replace(quiet, **changes)  # type: ignore[arg-type]


def watched(*points: SeriesPoint) -> GroupSnapshot:
    """Return a group that is to shrink from 8 to 3, with that past."""
    return replace(snapshot(clients=clients(8), capacity=100.0), recent=points)


TEN_MINUTES = tuple(point(60.0 * number) for number in range(9, -1, -1))


def held(taken: GroupSnapshot) -> Decision:
    return decision_on(taken, RESTED)


def test_a_group_that_was_left_alone_for_so_long_is_changed() -> None:
    decision = held(watched(*TEN_MINUTES))
    assert (decision.is_hold, decision.target) == (False, 3)


@pytest.mark.parametrize("points", [(), (point(60.0), point(0.0, moved=2))])
def test_a_group_that_needs_more_consumers_never_has_to_rest_first(points: tuple[SeriesPoint, ...]) -> None:
    assert held(replace(snapshot(capacity=65.0), recent=points)).target == 4


@pytest.mark.parametrize("changes", [{"moved": 2}, {"consumers": 4}])
def test_hold_soon_after_queues_moved_or_consumers_came(changes: dict[str, int]) -> None:
    points = (*TEN_MINUTES[:7], replace(TEN_MINUTES[7], **changes), *TEN_MINUTES[8:])  # type: ignore[arg-type]
    decision = held(watched(*points))
    assert decision.hold_cause is HoldCause.RECENTLY_CHANGED
    assert " ago, the policy's stabilisation asks for 5 min of rest" in decision.reason


def test_what_changed_before_is_of_no_matter_and_neither_is_anything_without_the_field() -> None:
    points = (*TEN_MINUTES[:3], replace(TEN_MINUTES[3], moved=5), *TEN_MINUTES[4:])
    assert not held(watched(*points)).is_hold
    assert not decision_on(watched()).is_hold


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ((), "known of no part of the 5 min"),
        (TEN_MINUTES[-2:], "known of only the last 2 min of the 5 min"),
        ((*TEN_MINUTES[:8], replace(TEN_MINUTES[8], is_gap=True), TEN_MINUTES[9]), "only the last 1 min"),
        ((*TEN_MINUTES[:8], replace(TEN_MINUTES[8], moved=None), TEN_MINUTES[9]), "only the last 1 min"),
        ((*TEN_MINUTES[:9], replace(TEN_MINUTES[9], consumers=0)), "no part"),
    ],
)
def test_hold_where_nobody_watched_for_so_long(points: tuple[SeriesPoint, ...], said: str) -> None:
    decision = held(watched(*points))
    assert decision.hold_cause is HoldCause.UNKNOWN_CHANGES
    assert said in decision.reason


def test_pods_tell_of_members_that_came_or_go() -> None:
    taken = in_pods(watched(*TEN_MINUTES))
    assert taken.deployment
    assert last_change(taken) is None
    young = replace(pod("p0"), created_at=ago(500), started_at=ago(490), ready_at=ago(70))
    assert last_change(replace(taken, deployment=replace(taken.deployment, pods=(young,)))) == ago(70)
    ending = replace(pod("p0"), is_ending=True)
    assert last_change(replace(taken, deployment=replace(taken.deployment, pods=(ending,)))) == AT


def test_the_past_is_known_from_the_beginning_of_its_first_point() -> None:
    assert known_since(watched(*TEN_MINUTES)) == ago(600)
