"""How often the scheduled DAG runs: every ten minutes, unless ``CONSUMER_PLANNER_EVERY_MINUTES`` says otherwise."""

import os
from datetime import timedelta
from typing import Final

from planner.errors import BadInputError

SETTING: Final = "CONSUMER_PLANNER_EVERY_MINUTES"
ALLOWED: Final = tuple(minutes for minutes in range(1, 61) if 60 % minutes == 0)
"""Others would not come evenly: cron begins each hour anew."""


def run_period() -> timedelta:
    """Return the time from one scheduled run to the next. Raises ``BadInputError`` on any but the allowed minutes."""
    minutes = os.environ.get(SETTING, "10")
    if minutes not in {str(minutes) for minutes in ALLOWED}:
        allowed = ", ".join(map(str, ALLOWED))
        raise BadInputError(f"{SETTING}: found {minutes!r}, expected minutes that divide an hour: {allowed}")
    return timedelta(minutes=int(minutes))


def cron_of(period: timedelta) -> str:
    """Return the cron line of a period that divides an hour."""
    minutes = period // timedelta(minutes=1)
    return "0 * * * *" if minutes == 60 else f"*/{minutes} * * * *"
