"""A load that stays as it is moves nobody: ``benchmarks.stationary``, shortened."""

import numpy as np
import pytest

from benchmarks.stationary import DAY_MIN, NOISES, changes, course_of, decided, messages_of

CALM_SEEDS = (4, 5, 6)
"""One seed for each noise but the largest, of loads that are not close to what some count can just do."""


@pytest.mark.parametrize("seed", CALM_SEEDS)
def test_noise_moves_nobody(seed: int) -> None:
    """Red where the rule follows noise that no count answers."""
    course = course_of(seed, days=1)
    assert course.noise == NOISES[seed % len(NOISES)]
    assert course.changes == 0
    assert course.late_minutes == 0


def test_a_load_that_doubles_does() -> None:
    """Red where nothing would be seen at all: the same day, but that its load doubles at noon."""
    loads = np.repeat([2.5, 2.5, 5.0], [DAY_MIN, DAY_MIN // 2, DAY_MIN // 2])
    counts, _ = decided(messages_of(np.random.default_rng(4), loads, 0.0), 3, 4)
    assert changes(counts) >= 1
    assert counts[-1] > counts[0]
