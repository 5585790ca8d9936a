"""The logs of client processes, read while they grow."""

import math
import threading
from collections.abc import Iterable, Mapping

from tests.clusters.kafka_load import ClientProcess, Delivery, Event, Partition
from tests.conformance.measure import Delivered, Hold

GAIN, DROPS, END = "assigned", ("revoked", "lost"), "stopped"


class GrowingLog:
    """What one process delivered so far, by topic; every line is read once. Safe for many threads."""

    def __init__(self, process: ClientProcess) -> None:
        self.process = process
        self._lock = threading.Lock()
        self._read = 0
        self._by_topic: dict[str, list[Delivery]] = {}

    def deliveries(self, topic: str) -> list[Delivery]:
        """Return the deliveries of a topic, oldest first."""
        with self._lock:
            found, self._read = self.process.deliveries_since(self._read)
            for one in found:
                self._by_topic.setdefault(one.topic, []).append(one)
            return list(self._by_topic.get(topic, ()))


def delivered(deliveries: Iterable[Delivery], moment_ms: int) -> list[Delivered]:
    """Return deliveries as ``measure`` wants them, seconds since ``moment_ms``."""

    def since(epoch_ms: int) -> float:
        return (epoch_ms - moment_ms) / 1000

    return [
        Delivered(since(one.epoch_ms), one.client, (one.topic, one.partition), one.offset, since(one.made_ms))
        for one in deliveries
    ]


def holds(events: Iterable[Event], moment_ms: int, gone_ms: Mapping[str, int]) -> list[Hold]:
    """Return who owned what from when to when, as the clients' own callbacks tell.

    ``gone_ms`` says when a client ended without a word; it owned nothing from then on.
    """
    gained: dict[tuple[str, Partition], int] = {}
    found: list[Hold] = []
    for event in sorted([*events, *_ends(gone_ms)], key=_time):
        if event.kind == GAIN:
            for partition in sorted(event.partitions):
                gained.setdefault((event.client, partition), event.epoch_ms)
        for key in _dropped(event, gained):
            found.append(_hold(key, gained.pop(key), event.epoch_ms, moment_ms))
    return [*found, *(_hold(key, since_ms, None, moment_ms) for key, since_ms in gained.items())]


def _dropped(event: Event, gained: Mapping[tuple[str, Partition], int]) -> list[tuple[str, Partition]]:
    """Return the holds that end with an event; a client that stops drops all."""
    if event.kind == END:
        return [key for key in gained if key[0] == event.client]
    if event.kind in DROPS:
        return [key for key in gained if key[0] == event.client and key[1] in event.partitions]
    return []


def _hold(key: tuple[str, Partition], gained_ms: int, dropped_ms: int | None, moment_ms: int) -> Hold:
    dropped_s = math.inf if dropped_ms is None else (dropped_ms - moment_ms) / 1000
    return Hold(*key, (gained_ms - moment_ms) / 1000, dropped_s)


def _ends(gone_ms: Mapping[str, int]) -> list[Event]:
    return [Event(at_ms, client, END, "") for client, at_ms in gone_ms.items()]


def _time(event: Event) -> int:
    return event.epoch_ms
