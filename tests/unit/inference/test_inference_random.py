"""Random groups: the true strategy is always among the answers, and the answers are all that there are."""

import pytest

from planner.inference import Search, infer
from tests.unit.inference.worlds import (
    BRUTE,
    CLASSES,
    canonical,
    everything,
    explains,
    found,
    random_truth,
    reservations,
)

pytestmark = pytest.mark.slow

STRATEGIES = (*CLASSES, "POP")
ROUNDS = 24
MOST_BY_HAND = 260
THOROUGH = Search(most_virtual_nodes=17, guessed_virtual_nodes=17, most_tried=512)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("told", [True, False])
def test_the_true_strategy_is_always_among_the_answers(strategy: str, told: bool) -> None:
    left_open = 0
    for seed in range(ROUNDS):
        truth = random_truth(seed, strategy, told=told, times=1 + seed % 3, can_hide=seed % 4 == 0)
        inferred = infer(truth.observations, THOROUGH)
        if truth.strategy in inferred.unsearched:
            left_open += 1
        elif inferred.evidence.queues_observed:
            assert truth.candidate in found(inferred, truth.observations), (seed, truth.strategy, truth.options)
    assert left_open < ROUNDS * 2 / 3 or not told, "nearly nothing was checked"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_whatever_is_answered_explains_what_was_seen(strategy: str) -> None:
    for seed in range(ROUNDS // 2):
        truth = random_truth(seed, strategy, told=False, times=2)
        for one in infer(truth.observations, THOROUGH).explanations:
            for options in one.parameters[:10]:
                assert explains(one.strategy, options, truth.observations), (seed, one.strategy, options)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_answers_are_exactly_what_trying_everything_finds(strategy: str) -> None:
    """So the true one is alone whenever nothing else gives the same ownership."""
    for seed in range(4):
        truth = random_truth(seed, strategy, told=False, sizes=(1, 2), times=2)
        if reservations(truth.observations) > MOST_BY_HAND:
            continue
        expected = {
            canonical(name, options, truth.observations)
            for name, options in everything(truth.observations)
            if explains(name, options, truth.observations)
        }
        answered = {one for one in found(infer(truth.observations, BRUTE), truth.observations) if one[0] != "CONFIG"}
        assert answered == expected, (seed, truth.strategy, truth.options)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_more_observations_never_leave_more_answers(strategy: str) -> None:
    for seed in range(ROUNDS // 4):
        seen = random_truth(seed, strategy, told=False, sizes=(1, 2), times=4).observations
        before = None
        for count in range(1, len(seen) + 1):
            answered = found(infer(seen[:count], BRUTE), seen)
            assert before is None or answered <= before, (seed, strategy, count)
            before = answered
