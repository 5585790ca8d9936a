"""The samples of one group over a long watch, in bounded memory: all recent ones, of older ones those with changes."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final, TypeVar

from planner.model.samples import GroupSample, QueueOffsets

WHOLE: Final = timedelta(seconds=300)
"""Progress is judged over so long: every sample of it is kept."""

WHOLE_SAMPLES: Final = 12
"""The newest samples that are kept however far apart they lie."""

SPARSE: Final = timedelta(seconds=60)
"""Older samples between which nothing happened are kept so far apart: enough for rates and for evidence."""

MOST: Final = 60
"""When there are more old samples, half of those between which nothing happened go."""

MOST_CHANGES: Final = 480
"""When there are still more, the oldest go: 240 changes of members are frequent in a day, whatever was before."""

_T = TypeVar("_T")


def add(samples: list[GroupSample], sample: GroupSample) -> None:
    """Add a sample at the end, and drop what is needed no more.

    All changes of members and owners and every offset that goes back show in the samples that stay as they did in all,
    up to ``MOST_CHANGES``. The first sample always stays.
    """
    samples.append(_share_unchanged(sample, samples[-1]) if samples else sample)
    old = _old(samples)
    if old > 1 and samples[old].at - samples[old - 2].at <= SPARSE and _is_idle(samples, old - 1):
        del samples[old - 1]
        old -= 1
    if old > MOST:
        idle = [number for number in range(1, old - 1) if _is_idle(samples, number)]
        # Every second one: what is idle between its neighbours is so between theirs, where these stay.
        thinned = {number for number in idle if number % 2}
        samples[:old] = [kept for number, kept in enumerate(samples[:old]) if number not in thinned]
        old -= len(thinned)
    if old > MOST_CHANGES:
        del samples[1 : 1 + old - MOST_CHANGES]


def _old(samples: Sequence[GroupSample]) -> int:
    """Return how many samples are old."""
    border = samples[-1].at - WHOLE
    old = max(0, len(samples) - WHOLE_SAMPLES)
    while old and samples[old - 1].at >= border:
        old -= 1
    return old


def _is_idle(samples: Sequence[GroupSample], number: int) -> bool:
    """Return whether nothing happened between the sample, the one before it and the one after it but progress."""
    before, sample, after = samples[number - 1 : number + 2]
    return _follows(sample, before) and _follows(after, sample)


def _follows(later: GroupSample, earlier: GroupSample) -> bool:
    return _group_state(later) == _group_state(earlier) and all(
        _is_ahead(now, before) for now, before in zip(later.offsets, earlier.offsets, strict=False)
    )


def _group_state(sample: GroupSample) -> object:
    """Return what must be the same: the members, what they own, and which queues exist."""
    return (
        [(each.identity, each.owned) for each in sample.members],
        [each.queue for each in sample.offsets],
        sample.routes,
    )


def _is_ahead(later: QueueOffsets, earlier: QueueOffsets) -> bool:
    if later.consumer_offset is None or earlier.consumer_offset is None:
        return later.consumer_offset is earlier.consumer_offset and later.broker_offset >= earlier.broker_offset
    return later.broker_offset >= earlier.broker_offset and later.consumer_offset >= earlier.consumer_offset


def _share_unchanged(sample: GroupSample, known: GroupSample) -> GroupSample:
    """Return the same sample with those parts of the sample before that are equal: most of a group never changes."""
    return replace(
        sample,
        routes=_same(sample.routes, known.routes),
        members=_same(sample.members, known.members),
        offsets=_same(sample.offsets, known.offsets),
        problems=_same(sample.problems, known.problems),
        listed=_same(sample.listed, known.listed),
        rocketmq=_same(sample.rocketmq, known.rocketmq),
    )


def _same(value: _T, known: _T) -> _T:
    return known if value == known else value
