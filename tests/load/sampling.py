"""Sample a group at a fixed period while a recording's events happen at their times."""

import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from planner.model.samples import GroupSample

SAMPLE_EVERY_S = 5.0

Event = tuple[float, Callable[[], None]]
"""Seconds from the first sample, and what happens then."""


def sample_group(
    observe: Callable[[datetime], GroupSample], seconds: float, events: Sequence[Event]
) -> list[GroupSample]:
    """Return what ``observe`` reads every ``SAMPLE_EVERY_S`` for ``seconds``; ``events`` happen meanwhile, in order."""
    samples = []
    ahead = list(events)
    started = time.monotonic()
    for number in range(int(seconds // SAMPLE_EVERY_S) + 1):
        time.sleep(max(0.0, started + number * SAMPLE_EVERY_S - time.monotonic()))
        while ahead and time.monotonic() - started >= ahead[0][0]:
            ahead.pop(0)[1]()
        sample = observe(datetime.now(UTC))
        samples.append(sample)
        _print_progress(sample, time.monotonic() - started, seconds)
    return samples


def _print_progress(sample: GroupSample, elapsed_s: float, seconds: float) -> None:
    lag = sum(offsets.lag or 0 for offsets in sample.offsets)
    problems = f", {len(sample.problems)} problems: {sample.problems[0]}" if sample.problems else ""
    sys.stderr.write(
        f"{elapsed_s:6.0f} of {seconds:.0f} s: {len(sample.members)} consumers, {lag} messages behind, "
        f"read in {sample.took_s * 1000:.0f} ms{problems}\n"
    )
    sys.stderr.flush()
