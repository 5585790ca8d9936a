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


def test_a_series_is_the_same_however_its_minutes_come() -> None:
    """Gaps, nothing at all and means of longer spans among them: red where a part forgets what the one before knew."""
    load = np.concatenate([np.zeros(3), noise(1500), np.zeros(4), noise(40), np.zeros(20), noise(60)])
    averaged = [minute % 7 > 4 for minute in range(len(load))]
    whole, parts = LoadSeries(load=load, averaged=averaged), LoadSeries()
    for first in range(0, len(load), 13):
        parts.extend(load[first : first + 13], averaged[first : first + 13])
    for line in ("load", "level", "summed", "observed"):
        assert getattr(whole, line).tolist() == getattr(parts, line).tolist()
    assert whole.observed[-1] == averaged.count(False)
