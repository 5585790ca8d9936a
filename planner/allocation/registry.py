"""Strategies by name."""

from planner.allocation.rocketmq import Averagely, AveragelyByCircle
from planner.allocation.strategy import Strategy
from planner.errors import UnknownNameError

STRATEGIES: dict[str, Strategy] = {strategy.name: strategy for strategy in (Averagely(), AveragelyByCircle())}


def find_strategy(name: str) -> Strategy:
    """Return the strategy of that name.

    Raises ``UnknownNameError``, which lists the known names.
    """
    try:
        return STRATEGIES[name]
    except KeyError:
        known = ", ".join(sorted(STRATEGIES))
        raise UnknownNameError(f"strategy {name!r} is not known here: choose one of {known}") from None
