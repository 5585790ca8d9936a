import itertools

import pytest

from planner.execution.phases import LEGAL_MOVES, IllegalMoveError, Phase, check_move


def reached_from(phase: Phase) -> set[Phase]:
    found: set[Phase] = set()
    left = [phase]
    while left:
        new = LEGAL_MOVES[left.pop()] - found
        found |= new
        left += new
    return found


def test_every_phase_is_in_the_table_and_can_be_reached() -> None:
    assert set(LEGAL_MOVES) == set(Phase)
    assert reached_from(Phase.PENDING) == set(Phase)


def test_from_every_phase_an_end_can_be_reached() -> None:
    ends = {phase for phase in Phase if phase.is_final}
    assert ends == {Phase.SUCCEEDED, Phase.ROLLED_BACK, Phase.REFUSED, Phase.EXPIRED, Phase.STUCK}
    for phase in set(Phase) - ends:
        assert reached_from(phase) & ends


def test_what_was_under_way_never_ends_as_if_nothing_had_been_touched() -> None:
    untouched = {Phase.PENDING, Phase.APPROVED, Phase.REFUSED, Phase.EXPIRED}
    for phase in Phase:
        if phase.is_in_progress:
            assert not reached_from(phase) & untouched


def test_an_illegal_move_names_both_phases_and_the_legal_ones() -> None:
    with pytest.raises(IllegalMoveError, match=r"Succeeded cannot follow Approved: Expired, Pending, Refused, Running"):
        check_move(Phase.APPROVED, Phase.SUCCEEDED)
    with pytest.raises(IllegalMoveError, match="nothing, as it is an end"):
        check_move(Phase.STUCK, Phase.RUNNING)


@pytest.mark.parametrize(("now", "then"), list(itertools.product(Phase, Phase)))
def test_moves_are_checked_by_the_table(now: Phase, then: Phase) -> None:
    if now == then or then in LEGAL_MOVES[now]:
        check_move(now, then)
    else:
        with pytest.raises(IllegalMoveError):
            check_move(now, then)
