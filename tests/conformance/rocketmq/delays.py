"""The delays that a forecast is made of, read off the courses of observed transitions.

A course lists the holds of each touched queue: member, gained, first and last delivery, dropped, in seconds since the
change. Only plain cases are read: one change at a time, concurrent consumers, one topic, nothing that waits.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from planner.forecast.common.request_fields import version
from planner.forecast.rocketmq.timing import generation
from tests.conformance.record import Record

Hold = list[Any]
_MEMBER, _GAINED, _FIRST, _LAST, _DROPPED = range(5)
PLAIN = ("join", "leave graceful", "leave crash", "restart graceful", "restart crash")
REACTION = "first reaction after"
LOOK = "newcomer's first look after its start"
FOLLOWING = "newcomer's first look after the first reaction"
WARM, COLD = "gain to first delivery", "newcomer's gain to first delivery"


def delays(records: Iterable[Record]) -> dict[str, list[float]]:
    """Return the delays by name, in seconds; generation and kind of change stand in the name where they matter."""
    found: dict[str, list[float]] = {}
    for record in records:
        keeps_up = not any(queue["lag"] for queue in record.request["queues"])
        if record.kind in PLAIN and len(record.request["change"]["clients"]) == 1 and keeps_up:
            for name, seconds in _of(record):
                found.setdefault(name, []).append(seconds)
    return found


def _of(record: Record) -> Iterator[tuple[str, float]]:
    client = generation(version(record.request["versions"]["client"], "client"))
    change = record.request["change"]
    changed = {one["id"] if isinstance(one, dict) else one for one in change["clients"]}
    holds = [hold for queue in record.observed["course"].values() for hold in queue]
    start = change.get("interval_s", 0.0)
    moments = [
        at - start
        for hold in holds
        if hold[_MEMBER] not in changed
        for at in (hold[_GAINED], hold[_DROPPED])
        if at is not None and at >= start
    ]
    if not moments:
        return
    kind = "a start" if change["kind"] in {"join", "restart"} else record.kind
    yield f"{REACTION} {kind}, {client.name}", min(moments)
    new = [hold[_GAINED] - start for hold in holds if hold[_MEMBER] in changed and (hold[_GAINED] or -1) >= start]
    if new:
        yield f"{LOOK}, {client.name}", min(new)
        yield f"{FOLLOWING}, {client.name}", min(new) - min(moments)
    for hold in holds:
        if hold[_GAINED] is not None and hold[_GAINED] >= 0 and hold[_FIRST] is not None:
            name = COLD if hold[_MEMBER] in changed else WARM
            yield f"{name}, {client.name}", hold[_FIRST] - hold[_GAINED]
