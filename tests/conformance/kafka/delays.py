"""The delays that a Kafka forecast is made of, read off the courses of observed transitions.

A course lists the holds of each touched partition: member, gained, first and last delivery, dropped, in seconds since
the change. Only plain cases are read: one member joins, closes or dies.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.conformance.record import Record

Hold = list[Any]
_MEMBER, _GAINED, _FIRST, _LAST, _DROPPED = range(5)
PLAIN = ("join", "leave graceful", "leave crash")
EAGER = ("range", "roundrobin", "sticky")
HEARTBEAT_S = 3.0
SERVER_HEARTBEAT_S = 5.0


def delays(records: Iterable[Record]) -> dict[str, list[float]]:
    """Return the delays by the field of ``Calibration`` that stands for them, and what they are, in seconds."""
    found: dict[str, list[float]] = {}
    for record in records:
        if record.kind in PLAIN and len(record.request["change"]["clients"]) == 1:
            for name, seconds in _of(record):
                found.setdefault(name, []).append(seconds)
    return found


def _of(record: Record) -> Iterator[tuple[str, float]]:
    is_classic = record.request["protocol"] == "classic"
    holds = [hold for partition in record.observed["course"].values() for hold in partition]
    gains = _by_member(holds, _GAINED, min)
    firsts = _by_member([hold for hold in holds if (hold[_GAINED] or -1.0) >= 0], _FIRST, min)
    for member, gained in gains.items():
        if member in firsts:
            yield ("fetch_s" if is_classic else "consumer_fetch_s"), firsts[member] - gained
    gone = _gone(record)
    drops = _by_member([hold for hold in holds if not gone.startswith(hold[_MEMBER])], _DROPPED, min)
    if record.request["strategy"] in EAGER and drops and gains:
        yield "handled_s, twice, and assign_s", min(gains.values()) - max(drops.values())
        if record.kind != "leave crash":
            yield from _beats(record, drops.values())
    if record.kind == "leave graceful" and is_classic:  # ids of the consumer protocol do not tell names
        yield (
            "close_s, and the rest of a poll",
            max(_by_member([hold for hold in holds if gone.startswith(hold[_MEMBER])], _DROPPED, max).values()),
        )
    if record.kind == "join" and not is_classic and gains:
        yield "start_s, of a process with other members", min(gains.values()) - SERVER_HEARTBEAT_S


def _beats(record: Record, heard: Iterable[float]) -> Iterator[tuple[str, float]]:
    """Yield how much later than the clock of its heartbeats a member heard, by the number of beats since the round."""
    for at in heard:
        age = at + record.request["since_rebalance_s"]
        beats = round(age / HEARTBEAT_S)
        few = "up to 4 beats" if beats <= 4 else "5 to 7 beats" if beats <= 7 else "8 beats and more"
        yield f"told_s less assigned_s and beat_late_s, {few}", age - beats * HEARTBEAT_S


def _gone(record: Record) -> str:
    """Return the id of the member that leaves, nothing where one joins; it begins with the name in the course."""
    client = record.request["change"]["clients"][0]
    return client if isinstance(client, str) else ""


def _by_member(holds: Iterable[Hold], field: int, pick: Any) -> Mapping[str, float]:
    found: dict[str, list[float]] = {}
    for hold in holds:
        if hold[field] is not None and hold[field] >= 0:
            found.setdefault(hold[_MEMBER], []).append(hold[field])
    return {member: pick(times) for member, times in found.items()}
