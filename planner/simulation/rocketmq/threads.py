"""What more threads or larger batches would do at most for RocketMQ's push consumers: what they share is unknown.

The calls that run at a time follow from a member's running info by Little's law: messages per second (``consumeOKTPS``,
``consumeFailedTPS``) times the time of a call (``consumeRT``) over the messages of a call; a pool has
``PROP_THREADPOOL_CORE_SIZE`` threads (``ConsumeMessageConcurrentlyService``, 4.9 to 5.5).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

from planner.model.snapshot import ClientSetup, GroupSnapshot
from planner.simulation.need import Need
from planner.text.words import counted, per_second

SATURATED: Final = 0.9
"""Share of a pool that is busy, from which more threads do more: a figure of a minute misses the last few percent."""

MOST_THREADS: Final = 1000
"""``consumeThreadMin`` and ``consumeThreadMax`` are from 1 to 1000 (``DefaultMQPushConsumerImpl#checkConfig``)."""

BATCH, PULLED, PAUSE = "consumeMessageBatchMaxSize", "pullBatchSize", "pullInterval"
DEFAULTS: Final = {BATCH: 1, PULLED: 32, PAUSE: 0}
"""What ``DefaultMQPushConsumer`` has where it reports nothing (4.9 to 5.5)."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The threads of one push consumer: of ``usable`` ones ``least_busy`` to ``most_busy`` ran in the last minute.

    In order a thread works on a queue of its own, so that no more are usable than it owns ``queues``; ``None``: nobody
    knows how many. ``fetched_per_s`` are the messages per second that its pauses between pulls allow, ``None`` for no
    such bound.
    """

    threads: int
    usable: int
    queues: int | None
    least_busy: float
    most_busy: float
    handled_per_s: float
    batch: int
    pulled: int
    cached: int | None
    fetched_per_s: float | None
    orderly: bool

    @property
    def is_saturated(self) -> bool:
        """True when every usable thread is busy, however many messages a call has."""
        return self.least_busy >= SATURATED * self.usable

    @property
    def may_be_saturated(self) -> bool:
        """True unless threads are free, however many messages a call has."""
        return self.most_busy >= SATURATED * self.usable


def more_threads(snapshot: GroupSnapshot, need: Need) -> str:
    """Return what ``threads_instead`` says of the snapshot's members."""
    owned = Counter(state.owner for state in snapshot.data_queues if state.owner is not None)
    return threads_instead(need.instead, snapshot.setups, owned, need.factor)


def threads_instead(instead: str, setups: Sequence[ClientSetup], owned: Mapping[str, int], factor: float) -> str:
    """Return what more threads and larger batches would do for members that have to do ``factor`` times as much.

    ``owned`` counts the data queues of each member; ``instead`` begins the sentence, without a comma or colon.
    """
    pools = [pool for setup in setups for pool in [pool_of(setup, owned.get(setup.client))] if pool]
    if not pools:
        return "What more threads would do is unknown: no member reports both its threads and the time of its calls"
    full = [pool for pool in pools if pool.is_saturated]
    if not full:
        return _not_saturated(pools)
    tightest = min(full, key=lambda pool: (pool.threads, pool.handled_per_s))
    return _more_threads(instead, tightest, len(full), len(setups), factor)


def pool_of(setup: ClientSetup, owned: int | None) -> Pool | None:
    """Return how a client's threads are used, ``None`` where it does not report them or consumed nothing lately."""
    if not setup.threads or setup.call_s is None or setup.handled_per_s is None:
        return None
    batch, pulled, pause_ms = (_setting(setup, name) for name in (BATCH, PULLED, PAUSE))
    usable = min(setup.threads, owned) if setup.orderly and owned else setup.threads
    busy = setup.handled_per_s * setup.call_s
    return Pool(
        threads=setup.threads,
        usable=usable,
        queues=owned,
        least_busy=min(busy / _real_batch(batch, pulled), usable),
        most_busy=min(busy, usable),
        handled_per_s=setup.handled_per_s,
        batch=max(batch, 1),
        pulled=max(pulled, 1),
        cached=setup.cached_messages,
        fetched_per_s=owned * pulled * 1000 / pause_ms if owned and pause_ms > 0 else None,
        orderly=bool(setup.orderly),
    )


def _setting(setup: ClientSetup, name: str) -> int:
    text = dict(setup.settings).get(name, "")
    return int(text) if text.isascii() and text.isdecimal() else DEFAULTS[name]


def _real_batch(batch: int, pulled: int) -> float:
    """Return the most messages of a call on average: what one pull brings is cut into parts, never joined with more.

    Of 32 pulled messages, a batch of 20 makes two calls with 16 each.
    """
    pulled = max(pulled, 1)
    return float(Fraction(pulled, ceil(Fraction(pulled, max(batch, 1)))))


def _not_saturated(pools: Sequence[Pool]) -> str:
    """Return why threads are not what holds messages up, or that it is unknown because calls have several messages."""
    fullest = max(pools, key=lambda pool: pool.most_busy / pool.usable)
    if fullest.may_be_saturated:
        least, most = _whole(fullest.least_busy), _whole(fullest.most_busy)
        return (
            f"What more threads would do is unknown: {least} to {most} of {fullest.usable} are busy, as no member "
            f"reports how many messages a call has (at most {fullest.batch})"
        )
    busy = f"at most {_whole(fullest.most_busy)} of a member's {counted(fullest.usable, 'thread')} were busy at a time"
    sentence = f"More threads would not help: {busy} in the last minute"
    return sentence + ("; its cache is empty, so that it waits for messages" if fullest.cached == 0 else "")


def _whole(threads: float) -> int:
    """Return so many threads as a whole number; one that is busy now and then is one."""
    return max(round(threads), 1)


def _more_threads(instead: str, pool: Pool, full: int, members: int, factor: float) -> str:
    if pool.orderly and pool.queues is not None and pool.queues <= pool.threads:
        return (
            "More threads would not help: in order a member works on one message of a queue at a time, and with "
            f"{counted(pool.queues, 'queue')} it has work for {pool.queues} of its {counted(pool.threads, 'thread')}"
            f"{_batches(pool)}"
        )
    target = min(max(ceil(round(pool.threads * factor, 1)), pool.threads + 1), MOST_THREADS)
    threads = target if not pool.orderly or pool.queues is None else min(target, pool.queues)
    most_per_s = pool.handled_per_s * threads / pool.threads
    if pool.fetched_per_s is not None and pool.fetched_per_s < most_per_s:
        if pool.fetched_per_s <= pool.handled_per_s / SATURATED:
            return (
                f"More threads would not help: its pauses between pulls ({PAUSE}) let a member fetch at most "
                f"{per_second(pool.fetched_per_s)} messages/s"
            )
        most_per_s = pool.fetched_per_s
    busy = "the only one is" if pool.threads == 1 else f"all {pool.threads} are"
    of_members = "" if full == members else f" on {full} of {members} members"
    return (
        f"{instead}: {threads} instead of {pool.threads} threads a member would serve at most "
        f"{per_second(most_per_s)} instead of {per_second(pool.handled_per_s)} messages/s ({busy} busy "
        f"now{of_members}), if what the listener calls and the processors keep up; planner migrate update brings "
        f"consumeThreadMin and consumeThreadMax {threads} in the pods' template{_batches(pool)}"
    )


def _batches(pool: Pool) -> str:
    """Return what larger batches would do; nothing where a call may have all messages of a pull already."""
    if pool.batch >= pool.pulled:
        return ""
    return (
        f". Whether larger batches ({BATCH}, now {pool.batch}, at most {pool.pulled}) help is unknown: only if one "
        "call for several messages takes less time than a call for each"
    )
