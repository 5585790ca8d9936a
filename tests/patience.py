"""Waiting in tests of real RocketMQ groups: limits are there against hanging only, a busy machine takes its time."""

import time
from collections.abc import Callable
from typing import TypeVar

from planner.errors import UnknownNameError
from planner.model.samples import GroupSample
from planner.sources.rocketmq import TimeLimits

T = TypeVar("T")

PATIENT = TimeLimits(connect_s=30.0, request_s=60.0, running_info_s=60.0, members_s=120.0)
"""For looks where a test is about something else. Brokers themselves wait 10 s for a member."""


def if_known(read: Callable[[], T]) -> T | None:
    """Return what ``read`` returns, ``None`` as long as no broker knows the group.

    A client is ready once it has started. Where its first heartbeat fails, on a busy machine, the next is 30 s later.
    """
    try:
        return read()
    except UnknownNameError:
        return None


def members_known(read: Callable[[], GroupSample]) -> int:
    """Return how many members a group has, 0 as long as no broker knows it."""
    sample = if_known(read)
    return len(sample.members) if sample else 0


def await_steady(is_so: Callable[[], bool], for_s: float, within_s: float) -> None:
    """Return once it has been so at every look for ``for_s``; a test that waits for ``within_s`` has failed."""
    since = begun = time.monotonic()
    while time.monotonic() < since + for_s:
        time.sleep(0.25)
        if not is_so():
            since = time.monotonic()
            assert since < begun + within_s, f"not steady for {for_s:g} s within {within_s:g} s"
