"""The bound, the plan, and what follows from a watch: what needs no broker."""

from collections import Counter
from math import comb

import pytest

from planner.documents.forecast import forecast
from tests.conformance.live.bound import COVERAGE, LEVEL, least_covered
from tests.conformance.live.rocketmq import LOCKS, QUICK
from tests.conformance.live.test_live_transitions import GROUPS, TRANSITIONS, transition
from tests.conformance.live.transition import Transition, Watch, judged, together, undelivered
from tests.conformance.measure import NotSettledError, owners_of
from tests.conformance.record import Record
from tests.conformance.report import compare
from tests.unit.dynamics.small_groups import leave, rocketmq_request

Q, OTHER = ("T", "broker-a", 0), ("T", "broker-a", 1)


def odds_below(least: int, figures: int) -> float:
    """The odds that fewer than ``least`` of so many figures are covered."""
    return sum(comb(figures, held) * COVERAGE**held * (1 - COVERAGE) ** (figures - held) for held in range(least))


@pytest.mark.parametrize("figures", [1, 5, 12, 18, 30, 100])
def test_fewer_than_the_bound_is_unlikely_and_the_bound_itself_is_not(figures: int) -> None:
    least = least_covered(figures)
    assert odds_below(least, figures) <= LEVEL < odds_below(least + 1, figures)


def test_the_bound_of_few_figures_asks_for_little() -> None:
    assert [least_covered(figures) for figures in (0, 1, 3, 12, 20)] == [0, 0, 0, 6, 12]


def test_every_transition_and_every_group_has_a_name_of_its_own() -> None:
    assert max(Counter(TRANSITIONS).values()) == max(Counter(GROUPS).values()) == 1
    assert len(TRANSITIONS) >= 12


def test_locks_that_live_shorter_bring_an_orderly_crash_into_seconds() -> None:
    answer = forecast(rocketmq_request(leave("crash", 2), orderly=True, settings=LOCKS))
    assert 4 < answer["total"]["pause_s"]["p05"] < answer["total"]["pause_s"]["p95"] < 12


@pytest.mark.parametrize("kind", ["broker_down", "broker_up"])
def test_quick_polls_bring_a_change_of_brokers_into_seconds(kind: str) -> None:
    change = {"kind": kind, "broker": "broker-b"}
    assert forecast(rocketmq_request(change, settings=QUICK))["total"]["settle_s"]["p95"] < 20


def seen(pause_s: float, doubt: str = "", name: str = "crash") -> Transition:
    """A crash with that pause and no duplicates."""
    total = {"pause_s": pause_s, "stall_s": None, "duplicates": 0, "settle_s": pause_s}
    observed = {"moved": [], "total": total}
    compared = compare(Record(name, "rocketmq", rocketmq_request(leave("crash", 2), trials=20), observed, {}))
    return Transition(name, compared, {}, doubt)


def test_a_doubtful_transition_is_not_judged_and_says_so() -> None:
    calm, busy = seen(0.6), seen(0.6, "the machine was busy")
    watch = Watch({"calm": calm, "busy": busy, "broken": NotSettledError("no owner")}, {})
    assert judged(watch, "rocketmq", "pause_s") + judged(watch, "rocketmq", "duplicates") == list(calm.points)
    assert judged(watch, "kafka", "pause_s") == []
    assert [line.rpartition(": ")[2] for line in busy.lines()] == ["the machine was busy"] * 2
    assert [line.rpartition(": ")[2] for line in calm.lines()] == ["covered", "MISSED"]


def test_a_missed_figure_is_told_as_such() -> None:
    verdicts = {line.split()[1]: line.rpartition(": ")[2] for line in seen(77.0).lines()}
    assert verdicts == {"pause_s": "MISSED", "duplicates": "MISSED"}


def test_what_kept_a_transition_from_being_seen_is_raised() -> None:
    watch = together([Watch({"crash": NotSettledError("no owner")}, {}), Watch({}, {"g": {}})])
    with pytest.raises(NotSettledError, match="no owner"):
        transition(watch, "crash")
    assert watch.lost == {"g": {}}


def test_a_message_is_lost_when_nobody_was_given_its_offset() -> None:
    given = [(Q, 0), (Q, 2), (Q, 2), (OTHER, 0), (OTHER, 1)]
    assert undelivered({Q: 4, OTHER: 2}, given) == {Q: [1, 3]}
    assert undelivered({Q: 1}, []) == {Q: [0]}


def test_owners_are_listed_by_queue() -> None:
    assert owners_of({"c1": [list(Q), list(OTHER)], "c2": [list(OTHER)]}) == {Q: {"c1"}, OTHER: {"c1", "c2"}}
