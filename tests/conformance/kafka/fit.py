"""Print the delays of the calibration half, and how the forecasts lie: ``python -m tests.conformance.kafka.fit``.

The first table proposes a spread for each delay: the even one, and the busy one (``ProcessTimes.delay``), with the same
5th and 95th percentile as what was seen. The second says for each kind of change and protocol where what was seen lies
among the trials of its forecast: 0.5 in the mean where the forecast is neither early nor late.
"""

from collections.abc import Iterable

import numpy as np

from planner.documents.forecast.kafka import read_request
from planner.forecast.kafka.answers.answer import forecast_kafka
from planner.forecast.kafka.membership.process_times import CALM
from tests.conformance.fit import LEVELS, even_spread
from tests.conformance.kafka.delays import EAGER, delays
from tests.conformance.record import Record
from tests.conformance.report import MEASURES
from tests.conformance.split import CALIBRATION, of_half
from tests.conformance.store import Store

_OUTER = (0.05, 0.95)
_BUSY = np.quantile(np.random.default_rng(1).random(100_000) ** CALM * np.random.default_rng(2).random(100_000), _OUTER)
"""The 5th and 95th percentile of a busy spread from 0 to 1."""

Place = tuple[float, float, bool]


def busy_spread(values: Iterable[float]) -> tuple[float, float]:
    """Return the ends of the busy spread with the 5th and 95th percentile of the values; the lower one at least 0."""
    low, high = np.quantile(list(values), _OUTER)
    width = (high - low) / (_BUSY[1] - _BUSY[0])
    least = max(float(low - width * _BUSY[0]), 0.0)
    return least, least + float(width)


def places(records: Iterable[Record]) -> dict[tuple[str, str, str], list[Place]]:
    """Return by kind, protocol and figure: place among the trials from 0 to 1, width of the interval, inside it."""
    found: dict[tuple[str, str, str], list[Place]] = {}
    for record in records:
        totals = forecast_kafka(read_request(record.request)).totals()
        for measure in MEASURES:
            trials, seen = getattr(totals, measure), record.observed["total"][measure]
            if trials is None or seen is None or np.isnan(trials).any():
                continue
            low, high = np.quantile(trials, _OUTER)
            below, at = (trials < seen - 5e-4).mean(), (np.abs(trials - seen) <= 5e-4).mean()
            place = (float(below + at / 2), float(high - low), bool(low - 5e-4 <= seen <= high + 5e-4))
            found.setdefault((record.kind, _protocol(record), measure), []).append(place)
    return found


def _protocol(record: Record) -> str:
    if record.request["protocol"] == "consumer":
        return "consumer"
    return "eager" if record.request["strategy"] in EAGER else "cooperative"


def main() -> None:
    """Print both tables."""
    records = of_half(Store("kafka").records(), CALIBRATION)
    print(f"{len(records)} transitions of the calibration half")
    for name, values in sorted(delays(records).items()):
        quantiles = "  ".join(f"{value:6.3f}" for value in np.quantile(values, LEVELS))
        even, busy = (f"({ends[0]:.3f}, {ends[1]:.3f})" for ends in (even_spread(values), busy_spread(values)))
        print(f"{name:58s} {len(values):4d}  {quantiles}  even {even}  busy {busy}")
    for (kind, protocol, measure), found in sorted(places(records).items()):
        place, width, inside = (float(np.mean([one[index] for one in found])) for index in range(3))
        where = f"{kind:18s} {protocol:12s} {measure:11s} {len(found):4d}"
        print(f"{where}  place {place:.2f}  inside {inside:.0%}  width {width:.2f}")


if __name__ == "__main__":
    main()
