"""Values of the backtest app's options, checked before Spark starts; each raises ``BadInputError`` for another one."""

import math
from typing import Final

from planner.backtest.compare import find_policies
from planner.backtest.scenario import STEP_S
from planner.errors import BadInputError

DEFAULT_RULES: Final = ("planner", "keda", "flink", "optimum")
FEWEST_DAYS: Final = 0.02
MOST_DAYS: Final = 60.0
MOST_S: Final = 86_400.0


def rules(text: str) -> tuple[str, ...]:
    """Return the names of rules between commas, each once."""
    return find_policies(_items(text))


def days(text: str) -> float:
    """Return a number of days, 0.02 to 60."""
    value = _number("--days", text)
    if not FEWEST_DAYS <= value <= MOST_DAYS:
        raise BadInputError(f"option --days: found {text!r}, expected {FEWEST_DAYS:g} to {MOST_DAYS:g} days")
    return value


def periods(text: str) -> tuple[float, ...]:
    """Return seconds between commas, each once: whole multiples of the step in which a group is played."""
    values = _numbers("--every", text, MOST_S)
    for value in values:
        if value % STEP_S:
            raise BadInputError(
                f"option --every: found {value:g}, expected multiples of {STEP_S:g} seconds, the step of a backtest"
            )
    return values


def prices(text: str) -> tuple[float, ...]:
    """Return prices of a rebalance in consumer-hours between commas, each once."""
    return _numbers("--rebalance-h", text, math.inf)


def waits(text: str) -> tuple[float, ...]:
    """Return seconds between commas, each once, that a message may wait."""
    return _numbers("--late-after", text, MOST_S)


def _numbers(option: str, text: str, most: float) -> tuple[float, ...]:
    values = [_number(option, item) for item in _items(text)]
    for value in values:
        if not 0 < value <= most or math.isinf(value):
            limit = "" if math.isinf(most) else f" and at most {most:g}"
            raise BadInputError(
                f"option {option}: found {value:g}, expected numbers above 0{limit} with commas between"
            )
    return tuple(dict.fromkeys(values))


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInputError(f"option {option}: found {text!r}, expected a number") from None


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")]
