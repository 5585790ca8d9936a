"""Waiting in tests of real RocketMQ groups: limits are there against hanging only, a busy machine takes its time."""

import time
from collections.abc import Callable

from planner.sources.rocketmq import TimeLimits

PATIENT = TimeLimits(connect_s=30.0, request_s=60.0, running_info_s=60.0, members_s=120.0)
"""For looks where a test is about something else. Brokers themselves wait 10 s for a member."""


def await_steady(is_so: Callable[[], bool], for_s: float, within_s: float) -> None:
    """Return once it has been so at every look for ``for_s``; a test that waits for ``within_s`` has failed."""
    since = begun = time.monotonic()
    while time.monotonic() < since + for_s:
        time.sleep(0.25)
        if not is_so():
            since = time.monotonic()
            assert since < begun + within_s, f"not steady for {for_s:g} s within {within_s:g} s"
