"""The same number of consumers at all times."""

from collections.abc import Iterator

from planner.backtest.observation import Observation
from planner.backtest.scenario import Scenario


class Fixed:
    """One count, ordered at the begin."""

    name = "fixed"
    every_s = 3600.0
    reads_busy = False

    def __init__(self, count: int) -> None:
        self._count = count

    @property
    def tuning(self) -> str:
        """The count."""
        return f"{self._count} consumers"

    def decide(self, observation: Observation) -> int | None:
        """Return the count at the begin, nothing later."""
        return self._count if observation.second == 0.0 else None


def fixed_grid(scenario: Scenario) -> Iterator[Fixed]:
    """Yield every count, at most 64 of them evenly between the limits."""
    stride = max(1, (scenario.highest - scenario.lowest) // 64)
    counts = dict.fromkeys([*range(scenario.lowest, scenario.highest + 1, stride), scenario.highest])
    for count in counts:
        yield Fixed(count)
