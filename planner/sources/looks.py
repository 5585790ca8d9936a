"""The looks at one group over a long watch, in bounded memory: all recent ones, of older ones those that tell more."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final, TypeVar

from planner.model.samples import GroupSample, QueueOffsets

WHOLE: Final = timedelta(seconds=300)
"""Progress is judged over so long: every look of it is kept."""

WHOLE_LOOKS: Final = 12
"""The newest looks that are kept however far apart they lie."""

SPARSE: Final = timedelta(seconds=60)
"""Older looks between which nothing happened are kept so far apart: enough for rates and for a picture."""

MOST: Final = 60
"""When there are more old looks, half of those between which nothing happened go."""

MOST_TELLING: Final = 480
"""When there are still more, the oldest go: 240 changes of members are frequent in a day, whatever was before."""

_T = TypeVar("_T")


def add(looks: list[GroupSample], sample: GroupSample) -> None:
    """Add a look at the end, and drop what is needed no more.

    All changes of members and owners and every offset that goes back show in the looks that stay as they did in all,
    up to ``MOST_TELLING``. The first look always stays.
    """
    looks.append(_shared(sample, looks[-1]) if looks else sample)
    old = _old(looks)
    if old > 1 and looks[old].at - looks[old - 2].at <= SPARSE and _is_idle(looks, old - 1):
        del looks[old - 1]
        old -= 1
    if old > MOST:
        idle = [number for number in range(1, old - 1) if _is_idle(looks, number)]
        # Every second one: what is idle between its neighbours is so between theirs, where these stay.
        dropped = {number for number in idle if number % 2}
        looks[:old] = [look for number, look in enumerate(looks[:old]) if number not in dropped]
        old -= len(dropped)
    if old > MOST_TELLING:
        del looks[1 : 1 + old - MOST_TELLING]


def _old(looks: Sequence[GroupSample]) -> int:
    """Return how many looks are old."""
    border = looks[-1].at - WHOLE
    old = max(0, len(looks) - WHOLE_LOOKS)
    while old and looks[old - 1].at >= border:
        old -= 1
    return old


def _is_idle(looks: Sequence[GroupSample], number: int) -> bool:
    """Return whether nothing happened between the look, the one before it and the one after it but progress."""
    before, look, after = looks[number - 1 : number + 2]
    return _follows(look, before) and _follows(after, look)


def _follows(later: GroupSample, earlier: GroupSample) -> bool:
    return _who(later) == _who(earlier) and all(
        _is_ahead(one, known) for one, known in zip(later.offsets, earlier.offsets, strict=False)
    )


def _who(look: GroupSample) -> object:
    """Return what must be the same: who is there, what they own, and which queues there are."""
    return [(one.identity, one.owned) for one in look.members], [one.queue for one in look.offsets], look.routes


def _is_ahead(later: QueueOffsets, earlier: QueueOffsets) -> bool:
    if later.consumer_offset is None or earlier.consumer_offset is None:
        return later.consumer_offset is earlier.consumer_offset and later.broker_offset >= earlier.broker_offset
    return later.broker_offset >= earlier.broker_offset and later.consumer_offset >= earlier.consumer_offset


def _shared(sample: GroupSample, known: GroupSample) -> GroupSample:
    """Return the same sample with those parts of the look before that are equal: most of a group never changes."""
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
