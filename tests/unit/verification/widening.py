"""What it would do to widen intervals by a group's own misses: ground of ``docs/adr/0007``.

``python -m tests.unit.verification.widening`` forecasts every transition of ``tests/conformance/observations`` and
prints, for each system and figure, how often the check half lies inside, and how wide the intervals became in the mean:
as they are, and stretched about the median as conformal prediction asks for, by so many transitions of the calibration
half, drawn 2 000 times. 20 s of one processor.
"""

import math
import random
from collections.abc import Iterable, Sequence
from itertools import product
from statistics import mean

from tests.conformance.report import MEASURES, Point, compare
from tests.conformance.split import CALIBRATION, CHECK, of_half
from tests.conformance.store import Store

SYSTEMS = ("rocketmq", "kafka")
DRAWS = 2_000
RECORDS = (5, 10, 20)
LEAST = {"pause_s": 0.05, "settle_s": 0.05, "duplicates": 0.5}
"""Half an interval is taken to be so wide at least: some forecasts of nothing have none."""
SHARE = 0.9


def half_width(point: Point, *, is_upper: bool) -> float:
    """Return how far the interval reaches from its median to one side."""
    low, middle, high = (point.forecast[name] for name in ("p05", "p50", "p95"))
    return max(high - middle if is_upper else middle - low, LEAST[point.measure])


def score(point: Point) -> float:
    """Return how many half widths from the median it was seen: at most 1 is inside."""
    off = point.seen - point.forecast["p50"]
    return abs(off) / half_width(point, is_upper=off > 0)


def stretch(scores: Sequence[float]) -> float:
    """Return the factor that split conformal prediction asks for, 1 at least: nothing is made narrower."""
    place = math.ceil((len(scores) + 1) * SHARE)
    return max(1.0, sorted(scores)[min(place, len(scores)) - 1])


def is_inside(point: Point, factor: float) -> bool:
    """Return whether it lies in the stretched interval."""
    return point.is_covered or (factor > 1 and score(point) <= factor)


def told(system: str, measure: str, calibration: Sequence[Point], check: Sequence[Point]) -> str:
    """Return one line of the table."""
    cells = [f"{mean(point.is_covered for point in check):.0%}"]
    for count in RECORDS:
        draw = random.Random(count)
        factors = [stretch([score(point) for point in draw.sample(calibration, count)]) for _ in range(DRAWS)]
        covered = mean(is_inside(draw.choice(check), factor) for factor in factors)
        cells.append(f"{covered:.0%}, ×{mean(factors):.1f}")
    return f"| {system} | {measure} | {len(check)} | {' | '.join(cells)} |"


def points(half: str) -> Iterable[Point]:
    """Yield every figure of a half's transitions."""
    for system in SYSTEMS:
        for record in of_half(Store(system).records(), half):
            yield from compare(record).points


def main() -> None:
    """Print the table."""
    calibration, check = list(points(CALIBRATION)), list(points(CHECK))
    print("| System | Figure | Cases | As it is | " + " | ".join(f"{count} records" for count in RECORDS) + " |")
    for system, measure in product(SYSTEMS, MEASURES):
        chosen = [
            [one for one in half if (one.record.system, one.measure) == (system, measure)]
            for half in (calibration, check)
        ]
        print(told(system, measure, *chosen))


if __name__ == "__main__":
    main()
