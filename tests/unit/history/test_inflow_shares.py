"""Whether the shares of a topic's queues show producers that go round, or keys."""

import numpy as np
import pytest

from planner.history.inflow_shares import are_shares_even

MESSAGES, QUEUES, DRAWS = 8_000, 8, 400


def test_rounds_are_even_however_many_threads_send() -> None:
    counts = [MESSAGES / QUEUES + (queue % 4) for queue in range(QUEUES)]
    assert are_shares_even(counts) is True


def test_a_few_keys_are_uneven() -> None:
    random = np.random.default_rng(1)
    keys = random.integers(0, QUEUES, 24)
    counts = np.bincount(keys, minlength=QUEUES) * MESSAGES / 24
    assert are_shares_even(counts.tolist()) is False


def test_chance_is_hardly_ever_taken_for_either() -> None:
    random = np.random.default_rng(2)
    judged = [are_shares_even(random.multinomial(MESSAGES, [1 / QUEUES] * QUEUES).tolist()) for _ in range(DRAWS)]
    assert sum(is_even is not None for is_even in judged) <= 0.03 * DRAWS


@pytest.mark.parametrize("counts", [[], [500.0], [500.0, 500.0], [10.0, 10.0, 10.0, 10.0]])
def test_too_few_queues_or_messages_say_nothing(counts: list[float]) -> None:
    assert are_shares_even(counts) is None
