from dataclasses import replace

import pytest

from planner.report.loads import MOST_STRIPS, WIDEST, axis_end, loads, stack_spots
from planner.simulation.outcome import ConsumerLoad
from tests import builders
from tests.report import worlds


def at(*utilisations: float | None) -> list[ConsumerLoad]:
    return [ConsumerLoad(f"c{n}", 1, None, share, 0, None, None) for n, share in enumerate(utilisations)]


def test_near_loads_are_stacked_far_ones_are_not() -> None:
    assert stack_spots([0.5, 0.51, 0.9], 0.04) == [(0.5, 0), (0.51, 1), (0.9, 0)]


def test_equal_loads_all_stay_visible() -> None:
    assert sorted(level for _, level in stack_spots([0.3] * 5, 0.04)) == [0, 1, 2, 3, 4]


def test_consumers_beyond_the_axis_are_told_not_drawn() -> None:
    (strip, *_) = loads(worlds.case(worlds.growing())).strips
    assert strip.count == 1
    assert strip.dots == ()
    assert [mark.code for mark in strip.beyond] == ["A"]


def test_an_unknown_load_is_never_drawn_as_none() -> None:
    for strip in loads(worlds.case(worlds.unknown_capacity())).strips:
        assert strip.dots == ()
        assert strip.unknown == strip.count


def test_places_agree_with_the_data() -> None:
    case = worlds.case(worlds.growing())
    shown = loads(case)
    end = axis_end(case.own_outcomes)
    for strip, outcome in zip(shown.strips, case.own_outcomes, strict=True):
        assert strip.count == outcome.count
        inside = [load for load in outcome.loads if load.utilisation is not None and load.utilisation <= end]
        assert len(inside) + len(strip.beyond) == outcome.count
        for dot, load in zip(strip.dots, inside, strict=True):
            assert dot.mark.client == load.client
            assert dot.at == pytest.approx(100.0 * (load.utilisation or 0.0) / end, abs=0.01)
    assert shown.bound == pytest.approx(100.0 * worlds.BOUND / end)
    assert shown.full == pytest.approx(100.0 / end)


def test_the_chosen_and_the_present_count_are_tagged() -> None:
    strips = {strip.count: strip for strip in loads(worlds.case(worlds.growing())).strips}
    assert strips[6].tags == ("chosen",)
    assert strips[3].tags == ("now",)
    assert [count for count, strip in strips.items() if strip.is_chosen] == [6]


def test_every_rejected_count_tells_all_its_reasons() -> None:
    world = worlds.growing()
    verdicts = {strip.count: strip.verdict.lower() for strip in loads(worlds.case(world)).strips}
    for rejection in world.record.decision.rejected:
        for reason in rejection.reasons:
            assert reason.lower() in verdicts[rejection.count]


def test_a_count_that_relieves_nobody_is_marked_not_useful() -> None:
    taken = builders.snapshot(builders.queues(brokers=("b",), each=8), builders.clients(7))
    strips = {strip.count: strip for strip in loads(worlds.case(builders.decided(taken))).strips}
    assert "not useful" in strips[7].tags
    assert not strips[7].is_useful


def test_other_strategies_come_separately_with_their_own_figures() -> None:
    case = worlds.case(worlds.growing())
    ((name, strips),) = loads(case).others
    assert name == "AVG_BY_CIRCLE"
    assert [strip.count for strip in strips] == [1, 2, 3, 4, 6, 8, 16]
    assert all(strip.dots == () for strip in strips)


def test_the_axis_ends_beyond_full_load_and_never_beyond_twice() -> None:
    outcome = worlds.growing().outcomes[0]
    assert axis_end([]) == 1.25
    assert axis_end([replace(outcome, loads=tuple(at(1.3)))]) == 1.5
    assert axis_end([replace(outcome, loads=tuple(at(30.0)))]) == WIDEST


def test_counts_beyond_the_strips_are_folded_not_lost() -> None:
    queues = builders.queues(brokers=("b",), each=400)
    wide = replace(builders.OBJECTIVE, highest=400)
    shown = loads(worlds.case(builders.decided(builders.snapshot(queues), wide, ("AVG",))))
    counts = {strip.count for strip in (*shown.strips, *shown.folded)}
    assert len(shown.strips) == MOST_STRIPS
    assert counts == {outcome.count for outcome in builders.decided(builders.snapshot(queues), wide, ("AVG",)).outcomes}


def test_without_outcomes_there_is_nothing_to_compare() -> None:
    assert loads(worlds.case(worlds.nobody_there())).strips == ()
