"""The change second by second: members as lanes, queues that move as bands on them, from the forecast's timeline."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from planner.errors import PlannerError
from planner.forecast import run_trials
from planner.forecast.words import count_between, seconds_between
from planner.report import words
from planner.report.case import Case
from planner.report.consumers import Mark
from planner.simulation.transition import transition_requests

MOST_LANES = 14
"""Members drawn; those with the fewest moving queues are shown as a number."""

MOST_BANDS = 48
"""Bands drawn: each has a row on the lane that it leaves, and one on the lane that it comes to."""

LEAST_SPAN_S = 0.5
"""The drawing shows at least so many seconds."""

STEPS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Band:
    """Queues that go from one member to another together, in seconds since the change.

    ``dropped_s`` is the old owner's last delivery and ``taken_s`` the new owner's first one, both as medians: where
    it comes first, both deliver. ``pause`` and ``twice`` are words, from the best queue at 5 % to the worst at 95 %.
    """

    old: Mark
    new: Mark
    queues: int
    dropped_s: float
    taken_s: float
    pause: str
    twice: str
    is_doubled: bool

    @property
    def overlaps(self) -> bool:
        """True when both owners deliver for a while."""
        return self.taken_s < self.dropped_s


@dataclass(frozen=True, slots=True)
class Lane:
    """One member with the bands that leave it and come to it."""

    mark: Mark
    leaving: tuple[Band, ...]
    coming: tuple[Band, ...]

    @property
    def rows(self) -> int:
        """Rows of the lane."""
        return len(self.leaving) + len(self.coming)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The drawing's data; ``until_s`` is its right end, ``hidden`` how many moving queues it leaves out."""

    lanes: tuple[Lane, ...]
    bands: tuple[Band, ...]
    until_s: float
    ticks: tuple[float, ...]
    hidden: int
    told: str


def lanes(case: Case) -> Lanes | None:
    """Return the drawing of the chosen change at the upper rates; ``None`` for a hold and where it is not forecast."""
    if case.is_hold or case.chosen is None or case.chosen.transition is None:
        return None
    try:
        requests = transition_requests(case.chosen, case.snapshot, case.record.snapshot.digest)
    except PlannerError:
        return None
    document = run_trials(requests[-1]).document()
    bands = _bands(case, document)
    drawn = _choose_bands(bands)
    until_s = max([LEAST_SPAN_S, *(1.12 * max(band.dropped_s, band.taken_s) for band in drawn)])
    moved = sum(band.queues for band in bands)
    hidden = moved - sum(band.queues for band in drawn)
    return Lanes(
        tuple(_lanes(drawn)),
        drawn,
        until_s,
        ticks(until_s),
        hidden,
        _describe(drawn, words.queues(moved, case.snapshot.system)),
    )


def _bands(case: Case, document: Document) -> tuple[Band, ...]:
    """Return the moving queues by old and new owner, in the order of the members."""
    names = _names(case, document)
    times = _times(document["timeline"])
    moving = sorted(
        (queue for queue in document["queues"] if queue["from"] and queue["to"] and queue["from"] != queue["to"]),
        key=lambda queue: (names[queue["from"]], names[queue["to"]], queue["queue"]),
    )
    return tuple(
        _band(case.marks[names[old]], case.marks[names[new]], list(queues), times.get(old, {}), times.get(new, {}))
        for (old, new), queues in groupby(moving, key=lambda queue: (queue["from"], queue["to"]))
    )


def _names(case: Case, document: Document) -> dict[str, str]:
    """Return by the forecast's names those of the page: newcomers have no ids yet, and each counts them by itself."""
    running = set(case.snapshot.clients)
    forecast_newcomers = [client for client in document["after"] if client not in running]
    page_newcomers = [load.client for load in case.chosen.loads if load.client not in running] if case.chosen else []
    forecast_newcomers.sort(key=lambda name: (len(name), name))
    return {
        **{client: client for client in case.snapshot.clients},
        **dict(zip(forecast_newcomers, page_newcomers, strict=True)),
    }


def _times(timeline: Sequence[Document]) -> dict[str, dict[str, float]]:
    """Return by client and event its median time, the first where there are several."""
    times: dict[str, dict[str, float]] = {}
    for event in timeline:
        times.setdefault(event["client"], {}).setdefault(event["event"], event["at_s"]["p50"])
    return times


def _band(
    old: Mark, new: Mark, queues: Sequence[Document], of_old: Mapping[str, float], of_new: Mapping[str, float]
) -> Band:
    pauses = [queue["pause_s"] for queue in queues if queue["pause_s"]]
    duplicates = [queue["duplicates"] for queue in queues]
    dropped_s = max(of_old.get("drops", of_old.get("stops", 0.0)), 0.0)
    waited_s = max((pause["p50"] for pause in pauses), default=0.0)
    taken_s = dropped_s + waited_s if waited_s > 0 else min(of_new.get("delivers", dropped_s), dropped_s)
    return Band(
        old=old,
        new=new,
        queues=len(queues),
        dropped_s=dropped_s,
        taken_s=max(taken_s, 0.0),
        pause=seconds_between(min(p["p05"] for p in pauses), max(p["p95"] for p in pauses)) if pauses else "unknown",
        twice=count_between(
            min(interval["p05"] for interval in duplicates), max(interval["p95"] for interval in duplicates)
        ),
        is_doubled=any(interval["p50"] > 0 for interval in duplicates),
    )


def _choose_bands(bands: Sequence[Band]) -> tuple[Band, ...]:
    """Return the bands between the members that have most of them, as many as there is room for."""
    weight: dict[str, int] = {}
    for band in bands:
        for mark in (band.old, band.new):
            weight[mark.client] = weight.get(mark.client, 0) + band.queues
    shown = set(sorted(weight, key=lambda client: (-weight[client], client))[:MOST_LANES])
    return tuple(band for band in bands if {band.old.client, band.new.client} <= shown)[:MOST_BANDS]


def costs(case: Case) -> tuple[tuple[str, str], ...]:
    """Return name and figure of what the chosen change costs; none where that is not known."""
    cost = case.chosen.transition if case.chosen else None
    if cost is None:
        return ()
    nouns = words.queue_nouns(case.snapshot.system)
    return (
        ("Longest pause", words.usually(cost.pause_s)),
        (f"Stall of {nouns} that stay", words.usually(cost.stall_s)),
        ("Messages that come twice", words.usual_count(cost.duplicates)),
        (f"Burst as {nouns} start again", words.usual_count(cost.burst_messages)),
        ("Settled after", words.usually(cost.settle_s)),
    )


def _lanes(bands: Sequence[Band]) -> Iterator[Lane]:
    marks = {mark.client: mark for band in bands for mark in (band.old, band.new)}
    for client in sorted(marks, key=lambda client: (marks[client].is_new, client)):
        leaving = tuple(band for band in bands if band.old.client == client)
        coming = tuple(band for band in bands if band.new.client == client)
        yield Lane(marks[client], leaving, coming)


def ticks(until_s: float) -> tuple[float, ...]:
    """Return round seconds from 0 on, at most seven of them: 2.6 s gives 0, 0.5, 1, 1.5, 2 and 2.5."""
    step = next((step for step in STEPS_S if until_s / step <= 6), until_s / 6)
    return tuple(round(number * step, 3) for number in range(int(until_s / step) + 1))


def _describe(bands: Sequence[Band], moved: str) -> str:
    """Return in words what the drawing shows, for readers who do not see it."""
    both = sum(band.queues for band in bands if band.overlaps)
    doubled = sum(band.queues for band in bands if band.is_doubled)
    last = max((max(band.dropped_s, band.taken_s) for band in bands), default=0.0)
    clauses = [f"{moved} move; in the median case the last one drawn is taken over after {words.duration(last)}"]
    if both:
        clauses.append(f"{both} are delivered by both owners for a while")
    if doubled:
        clauses.append(f"in {doubled} some messages come twice")
    return "; ".join(clauses) + "."
