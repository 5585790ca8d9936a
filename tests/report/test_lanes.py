"""The picture of the change: what moves when, from the forecast's own timeline."""

from dataclasses import replace
from itertools import pairwise

import pytest

from planner.forecast import run_trials
from planner.report.case import Case
from planner.report.lanes import Lanes, costs, lanes, ticks
from planner.report.swim import BEFORE, swim
from planner.report.write import render
from planner.simulation.transition import transition_requests
from tests.report import worlds
from tests.report.worlds import case

GROWING, SHRINKING = case(worlds.growing()), case(worlds.shrinking())


def drawn(of: Case) -> Lanes:
    found = lanes(of)
    assert found is not None
    return found


def foreseen(of: Case) -> dict:
    assert of.chosen is not None
    return run_trials(transition_requests(of.chosen, of.snapshot, of.record.snapshot.digest)[-1]).document()


@pytest.mark.parametrize("of", [GROWING, SHRINKING])
def test_every_queue_that_moves_in_the_case_shown_is_in_a_band(of: Case) -> None:
    found = drawn(of)
    assert found.hidden == 0
    assert sum(band.queues for band in found.bands) == len(foreseen(of)["moved"]) == len(of.moved)


def test_newcomers_are_the_pages_newcomers() -> None:
    assert [lane.mark.code for lane in drawn(GROWING).lanes] == ["A", "B", "C", "+1", "+2", "+3"]
    owners = {owned.queue: owned.owner for owned in GROWING.chosen.owners} if GROWING.chosen else {}
    moving = {(GROWING.owners_now[queue], owners[queue]) for queue in GROWING.moved}
    assert moving == {(band.old.client, band.new.client) for band in drawn(GROWING).bands}


def test_a_band_pauses_from_the_last_delivery_to_the_first_as_the_forecast_says() -> None:
    found = foreseen(GROWING)
    times = {
        event["client"]: event["at_s"]["p50"] for event in reversed(found["timeline"]) if event["event"] == "drops"
    }
    for band in drawn(GROWING).bands:
        pauses = [
            queue["pause_s"]["p50"]
            for queue in found["queues"]
            if queue["from"] == band.old.client and GROWING.owners_then[as_queue(queue)] == band.new.client
        ]
        assert band.dropped_s == times[band.old.client]
        if max(pauses) > 0:
            assert band.taken_s - band.dropped_s == pytest.approx(max(pauses))


def as_queue(queue: dict) -> object:
    return next(one for one in GROWING.owners_now if [one.topic, one.place[1], one.number] == queue["queue"])


def test_those_that_stop_deliver_no_more_after_the_signal() -> None:
    stopping = [lane for lane in drawn(SHRINKING).lanes if not lane.coming]
    assert len(stopping) == 3
    assert {band.dropped_s for lane in stopping for band in lane.leaving} == {0.0}


def test_pauses_are_hatched_between_two_owners_and_end_where_the_link_ends() -> None:
    picture = swim(drawn(GROWING))
    waits = [bar for bar in picture.bars if bar.kind == "waits"]
    pausing = [link for link in picture.links if link.right > link.left]
    assert pausing
    for bar, link in zip(waits, pausing, strict=True):
        assert (bar.left, bar.left + bar.width) == (link.left, pytest.approx(link.right))
        assert 0 < bar.width < 100
    assert all(0 <= bar.left <= bar.left + bar.width <= 100.01 for bar in picture.bars)


def test_where_both_deliver_the_new_owner_begins_before_the_old_one_ends() -> None:
    found = drawn(GROWING)
    band = replace(found.bands[0], dropped_s=1.0, taken_s=0.5)
    lane_old, lane_new = found.lanes[0], found.lanes[1]
    pair = (replace(lane_old, leaving=(band,), coming=()), replace(lane_new, leaving=(), coming=(band,)))
    pair = (replace(pair[0], mark=band.old), replace(pair[1], mark=band.new))
    picture = swim(replace(found, lanes=pair, bands=(band,), until_s=2.0))
    (both,) = [bar for bar in picture.bars if bar.kind == "both"]
    assert both.width == pytest.approx(100 * 0.5 / (2.0 * (1 + BEFORE)), abs=0.01)
    assert [bar.kind for bar in picture.bars if bar.mark == band.new] == ["owns", "both"]


def test_rows_do_not_lie_upon_each_other() -> None:
    picture = swim(drawn(GROWING))
    tops = sorted({bar.top for bar in picture.bars})
    assert all(after - before >= 10 for before, after in pairwise(tops))
    assert tops[-1] < picture.height


def test_a_large_group_shows_the_members_that_move_most_and_says_what_it_leaves_out() -> None:
    found = drawn(case(worlds.crowded()))
    assert len(found.lanes) <= 14
    assert found.hidden > 0


def test_a_hold_and_an_unknown_cost_have_no_picture() -> None:
    assert lanes(case(worlds.holding())) is None
    unknown = replace(GROWING, outcomes=tuple(replace(one, transition=None) for one in GROWING.outcomes))
    assert lanes(unknown) is None
    assert costs(unknown) == ()
    assert "costs in pauses and duplicates is not known" in render(unknown)


def test_ticks_are_round() -> None:
    assert ticks(2.6) == (0, 0.5, 1.0, 1.5, 2.0, 2.5)
    assert ticks(73.0) == (0, 20, 40, 60)
    assert len(ticks(90_000.0)) == 7
