"""``python -m tests.soak.beside``: one day, three groups with the same messages: the planner's, and two real HPAs'.

All groups read the same topic on the same broker; their pods are alike and may be as many. What each was given, and
when, is read from the consumers' own logs. See docs/beside-keda.md.
"""

import argparse
import math
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from planner.backtest.compare import best_run
from planner.backtest.policies.keda import THRESHOLDS_S, Keda, ScalerOptions
from planner.backtest.scenario import Prices, Scenario
from planner.model.queues import MessageQueue
from planner.storage.files import write_atomically
from scripts.demo_stage import BROKER, CAPACITY, NAMESPACE
from tests.clusters.deliveries import Given, Lane, read_given
from tests.soak.day import HOURS, LATE_S, Day, Served
from tests.soak.lag_autoscaler import LagTrigger, lag_driven
from tests.soak.town import (
    BEGIN,
    FEWEST,
    LOOK_S,
    Group,
    Town,
    dump,
    looking,
    open_town,
    sampling,
    send,
    standing,
)

PAGE = Path("docs/beside-keda.md")
START, END = "<!-- table -->", "<!-- end of table -->"
TOPIC, QUEUES, MOST = "day", 24, 10
FLOOR, RISES = 60.0, ((10.0, 380.0, 2.0), (20.0, 600.0, 1.5))
"""Messages per second; the rises as hour, height and width."""

EVERY = "30s"
"""How often the planner decides: as often as KEDA asks its source where nobody says otherwise."""

WORK_S = (*THRESHOLDS_S, 20.0, 30.0, 45.0)
"""Lags that are tried for the HPA, in seconds of one consumer's work."""

WINDOWS_S = (15.0, 60.0, 300.0)
"""Windows of stabilisation that are tried: the HPA's default, and shorter ones as a day takes half an hour."""

POD_START_S, INTERVAL_S = 5.0, 15.0
AFTER_S = 60.0
BUCKET_S = 5.0
MINUTE_S = 60.0
TOLD_EVERY_S = 60.0


def main(arguments: Sequence[str]) -> int:
    """Let the day pass for all; 1 where a message was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.beside", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long the day takes")
    parser.add_argument("--folder", type=Path, default=Path("work/beside"), help="logs, data and looks")
    parser.add_argument("--page", action="store_true", help=f"write the table in {PAGE}")
    options = parser.parse_args(arguments)
    if options.minutes < 1:
        parser.error(f"--minutes {options.minutes:g}: the day takes a minute at least")
    folder = options.folder.resolve() / f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    folder.mkdir(parents=True)
    day = Day(options.minutes * MINUTE_S, FLOOR, RISES)
    triggers = {"hpa": USUAL, "tuned-hpa": best_settings(day)}
    told = "; ".join(f"{name}: {settings}" for name, settings in triggers.items())
    print(told, flush=True)
    planned = _group(folder, "planner", day)
    driven = {_group(folder, name, day): settings for name, settings in triggers.items()}
    with open_town(folder, [planned], list(driven)) as town:
        pass_day(town, folder, day, driven)
        sides = [Side.of(town, group) for group in town.groups]
        dump(town, folder)
    lines = table(sides)
    print("\n".join(lines))
    if options.page:
        write_page(lines, options.minutes, told)
    return 1 if any(side.served.missing for side in sides) else 0


def _group(folder: Path, name: str, day: Day) -> Group:
    return Group(name, TOPIC, day, folder / "given" / name, QUEUES, MOST)


@dataclass(frozen=True)
class Settings:
    """How KEDA is set: messages of lag a pod, and the window for which the HPA waits before it scales down."""

    threshold: float
    window_s: float

    def __str__(self) -> str:
        return f"{self.threshold:.0f} messages of lag a pod, stabilisation {self.window_s:.0f} s"


USUAL = Settings(CAPACITY, 300.0)
"""A second of one consumer's work, and Kubernetes' own window."""


def best_settings(day: Day) -> Settings:
    """Return the settings of KEDA that would have been best on this very day.

    The day is half an hour, and so is what a rebalance costs: 0.25 h of a whole day's 24.
    """
    seconds = np.arange(INTERVAL_S / 2, day.seconds, INTERVAL_S)
    rates = np.array([day.rate(second / day.seconds * HOURS) for second in seconds])
    prices = Prices(0.25 * day.seconds / HOURS / 3600.0, 1.0)
    scenario = Scenario(
        queues=tuple(MessageQueue(TOPIC, BROKER, queue) for queue in range(QUEUES)),
        messages=np.repeat(rates[:, None] * INTERVAL_S / QUEUES, QUEUES, axis=1),
        interval_s=INTERVAL_S,
        history_s=0.0,
        system="rocketmq",
        strategy="AVG",
        capacity=CAPACITY,
        pod_start_s=POD_START_S,
        lowest=FEWEST,
        highest=MOST,
        start=BEGIN,
        late_after_s=LATE_S,
        prices=prices,
        every_s=INTERVAL_S,
        seed=1,
    )
    grid = {
        Keda(scenario, ScalerOptions(setting.threshold), setting.window_s): setting
        for setting in (Settings(work_s * CAPACITY, window_s) for work_s in WORK_S for window_s in WINDOWS_S)
    }
    best = best_run(scenario, list(grid))
    return next(setting for policy, setting in grid.items() if best.tuning.startswith(f"{policy.tuning};"))


def pass_day(town: Town, folder: Path, day: Day, driven: Mapping[Group, Settings]) -> None:
    """Send the day to all groups while the planner decides for the first and an HPA for each of the others."""
    triggers = [
        LagTrigger(group.target, partial(lags, town, group), settings.threshold, settings.window_s)
        for group, settings in driven.items()
    ]
    with ExitStack() as undo:
        undo.enter_context(lag_driven(town.stage.kubernetes, NAMESPACE, triggers, FEWEST, MOST))
        undo.enter_context(sampling(town, folder))
        undo.enter_context(standing(town, folder, "run", "--every", EVERY, "--observe-seconds", "0", "--no-page"))
        since_s = time.time()
        producer = send(town.stage, town.groups[0])
        undo.callback(producer.stop)
        undo.enter_context(looking(town, since_s))
        told_s = 0.0
        while (gone_s := time.time() - since_s) < day.seconds + AFTER_S:
            if gone_s >= told_s:
                told_s = gone_s + TOLD_EVERY_S
                counts = ", ".join(f"{group.name} {group.ready[-1][2]} pods" for group in town.groups if group.ready)
                print(f"hour {gone_s / day.seconds * HOURS:4.1f}: {counts}", flush=True)
            time.sleep(LOOK_S)


def lags(town: Town, group: Group) -> list[float]:
    """Return what each queue holds that the group has not committed."""
    produced = town.stage.rocketmq.produced(group.topic)
    committed = town.stage.rocketmq.committed(group.name, group.topic)
    return [float(count - (committed[queue] or 0)) for queue, count in produced.items()]


@dataclass(frozen=True)
class Side:
    """One group's day."""

    name: str
    looks: Sequence[tuple[float, int, int]]
    served: Served
    moved: int
    late_minutes: int
    waits: Mapping[int, float]

    @classmethod
    def of(cls, town: Town, group: Group) -> "Side":
        """Read all that the group's consumers logged."""
        served = town.served(group)
        given = read_given(group.logs)
        first = list({(one.lane, one.offset): one for one in reversed(given)}.values())
        waits = np.array([one.at_s - one.came_s for one in first])
        told = {share: float(np.percentile(waits, share)) for share in (50, 99)}
        return cls(group.name, group.ready, served, hands(given), len(late_minutes(first)), told)

    @property
    def counts(self) -> list[int]:
        """The counts of pods that were wanted one after the other."""
        wanted = [wanted for _, wanted, _ in self.looks]
        return [count for at, count in enumerate(wanted) if at == 0 or wanted[at - 1] != count]

    @property
    def rebalances(self) -> int:
        """How often the number of ready pods was another than at the look before; looks in a row are one change."""
        ready = [ready for _, _, ready in self.looks]
        changed = [now != before for before, now in pairwise(ready)]
        return sum(now and not before for before, now in pairwise([False, *changed]))

    @property
    def pod_hours(self) -> float:
        """Hours of wanted pods, in the day's own hours."""
        spent = sum((later[0] - sooner[0]) * sooner[1] for sooner, later in pairwise(self.looks))
        return spent * HOURS / (self.looks[-1][0] - self.looks[0][0])


def hands(given: Sequence[Given]) -> int:
    """Return how often a queue was given to another consumer than before, looked at every ``BUCKET_S`` seconds."""
    last: dict[Lane, tuple[int, str]] = {}
    moved = 0
    for one in given:
        bucket = math.floor(one.at_s / BUCKET_S)
        before = last.get(one.lane)
        moved += before is not None and before[0] != bucket and before[1] != one.client
        if before is None or before[0] != bucket:
            last[one.lane] = (bucket, one.client)
    return moved


def late_minutes(first: Sequence[Given]) -> set[int]:
    """Return the minutes in which some message waited that had waited longer than ``LATE_S`` already."""
    late = [(one.came_s + LATE_S, one.at_s) for one in first if one.at_s - one.came_s > LATE_S]
    return {
        minute
        for since, until in late
        for minute in range(math.floor(since / MINUTE_S), math.floor(until / MINUTE_S) + 1)
    }


def table(sides: Sequence[Side]) -> list[str]:
    """Return the figures as a Markdown table, one column a group."""
    rows = {
        "consumer-hours of 24 h": [f"{side.pod_hours:.0f}" for side in sides],
        "rebalances": [str(side.rebalances) for side in sides],
        "queues that changed hands": [str(side.moved) for side in sides],
        "messages that came twice": [str(side.served.twice) for side in sides],
        "minutes with a message later than 60 s": [str(side.late_minutes) for side in sides],
        "messages that waited over 60 s": [f"{side.served.late:,}".replace(",", " ") for side in sides],
        "longest wait": [f"{side.served.worst_wait_s:.0f} s" for side in sides],
        "median wait, 99 of 100 below": [f"{side.waits[50]:.2f} s, {side.waits[99]:.1f} s" for side in sides],
        "messages lost": [str(side.served.missing) for side in sides],
        "messages given": [f"{side.served.messages:,}".replace(",", " ") for side in sides],
        "counts": [" → ".join(map(str, side.counts)) for side in sides],
    }
    head = ["| | " + " | ".join(side.name for side in sides) + " |", "|---|" + "---|" * len(sides)]
    return [*head, *(f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows.items())]


def write_page(lines: Sequence[str], minutes: float, told: str) -> None:
    """Put the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    head, tail = text[: text.index(START) + len(START)], text[text.index(END) :]
    head_line = f"Measured on {datetime.now(UTC):%d %B %Y} in {minutes:.0f} minutes; {told}."
    write_atomically(PAGE, "\n".join([head, "", head_line, "", *lines, "", tail]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
