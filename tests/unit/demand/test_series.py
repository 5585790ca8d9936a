"""The level of a load, whatever the spans are in which it was observed."""

import numpy as np

from planner.demand.series import LoadSeries

SPAN_MIN, DAYS = 10, 3


def noise(minutes: int) -> np.ndarray:
    """Return a load of 4 whose minutes differ by a fifth, each from each other."""
    return 4.0 * np.exp(np.random.default_rng(1).normal(-0.02, 0.2, minutes))


def unrest(loads: np.ndarray, averaged: list[bool] | None = None) -> float:
    """Return by how much the level differs in the mean over the last days, as a part of it."""
    level = LoadSeries(load=loads, averaged=averaged).level[1440:]
    return float(level.std() / level.mean())


def test_a_load_observed_every_ten_minutes_has_as_sure_a_level_as_by_minute() -> None:
    """Red where the minutes of one span bear witness for the weight that follows the last minute at once."""
    minutes = noise(DAYS * 1440)
    spans = np.repeat(minutes.reshape(-1, SPAN_MIN).mean(axis=1), SPAN_MIN)
    averaged = [minute % SPAN_MIN > 0 for minute in range(len(spans))]
    assert unrest(spans, averaged) < 1.1 * unrest(minutes) < unrest(spans)
