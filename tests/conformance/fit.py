"""Print the delays of the calibration half and the spreads they propose: ``python -m tests.conformance.fit``.

An even spread stands for each delay: the one that has the same 5th and 95th percentile as what was seen.
"""

import numpy as np

from tests.conformance.rocketmq.cells import SYSTEM
from tests.conformance.rocketmq.delays import delays
from tests.conformance.split import CALIBRATION, of_half
from tests.conformance.store import Store

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def even_spread(values: list[float]) -> tuple[float, float]:
    """Return the ends of the even spread with the 5th and 95th percentile of the values; the lower one at least 0."""
    low, high = np.quantile(values, (0.05, 0.95))
    beyond = (high - low) / 18  # a twentieth of the whole spread lies beyond either of them
    return max(float(low - beyond), 0.0), float(high + beyond)


def main() -> None:
    """Print one line a delay."""
    records = of_half(Store(SYSTEM).records(), CALIBRATION)
    print(f"{len(records)} transitions of the calibration half")
    for name, values in sorted(delays(records).items()):
        quantiles = "  ".join(f"{value:6.3f}" for value in np.quantile(values, LEVELS))
        low, high = even_spread(values)
        print(f"{name:58s} {len(values):4d}  {quantiles}  spread ({low:.4f}, {high:.4f})")


if __name__ == "__main__":
    main()
