from dataclasses import replace

import pytest

from planner.report.headline import MOST_CHIPS, headline, split_sentence
from tests import builders
from tests.report import worlds


def test_the_sentence_of_the_decision_is_told_whole() -> None:
    world = worlds.growing()
    told = headline(worlds.case(world))
    assert f"{told.head}: {told.rest[0].lower()}{told.rest[1:]}" == world.record.decision.reason


def test_a_long_first_part_is_not_torn_off() -> None:
    sentence = "x" * 61 + ": y"
    assert split_sentence(sentence) == (sentence, "")


def test_figures_of_a_change_show_now_and_then() -> None:
    case = worlds.case(worlds.growing())
    consumers, busiest, moves, backlog = headline(case).facts
    assert case.staying is not None
    assert case.chosen is not None
    assert (consumers.now, consumers.then) == ("3", "6")
    assert (busiest.now, busiest.then) == (f"{case.staying.utilisation:.0%}", f"{case.chosen.utilisation:.0%}")
    assert moves.now == f"{case.chosen.moved_fewest}–{case.chosen.moved_most}"
    assert backlog.now == "9,000"
    assert "Staying at 3 consumers: never gone." in backlog.note


def test_a_hold_shows_no_second_figure_and_no_move() -> None:
    told = headline(worlds.case(worlds.holding()))
    assert told.answer == "hold"
    assert [fact.then for fact in told.facts] == [None] * 4
    assert told.facts[2].now == "0"
    assert told.caution == ""


def test_figures_on_data_that_was_not_accepted_carry_a_caution() -> None:
    assert "did not accept" in headline(worlds.case(worlds.outdated())).caution


def test_bars_are_shares_of_the_larger_of_full_and_the_worst() -> None:
    case = worlds.case(worlds.growing())
    assert case.staying is not None
    assert case.chosen is not None
    now, then = headline(case).facts[1].bars
    full = case.staying.utilisation
    assert full is not None
    assert full > 1.0
    assert now.high == 1.0
    assert then.high == pytest.approx((case.chosen.utilisation or 0.0) / full)
    assert then.mark == pytest.approx(worlds.BOUND / full)


def test_the_bar_of_moves_spans_the_exact_range() -> None:
    case = worlds.case(worlds.growing())
    assert case.chosen is not None
    (bar,) = headline(case).facts[2].bars
    assert (bar.low * 22, bar.high * 22) == (case.chosen.moved_fewest, case.chosen.moved_most)


def test_who_starts_and_who_stops() -> None:
    starting = headline(worlds.case(worlds.growing())).facts[0].chips
    stopping = headline(worlds.case(worlds.shrinking())).facts[0].chips
    assert [chip.change for chip in starting] == ["stays"] * 3 + ["starts"] * 3
    assert sorted(chip.change for chip in stopping) == ["stays"] * 3 + ["stops"] * 3


def test_many_consumers_are_a_number_only() -> None:
    taken = builders.snapshot(clients=builders.clients(MOST_CHIPS + 1))
    assert headline(worlds.case(builders.decided(taken))).facts[0].chips == ()


def test_what_is_not_known_is_called_unknown() -> None:
    facts = headline(worlds.case(worlds.unknown_capacity())).facts
    assert facts[1].now == "unknown"
    assert facts[1].bars == ()


def test_without_a_bound_none_is_drawn() -> None:
    case = replace(worlds.case(worlds.growing()), max_utilisation=None)
    fact = headline(case).facts[1]
    assert "bound" not in fact.note
    assert all(bar.mark is None for bar in fact.bars)
