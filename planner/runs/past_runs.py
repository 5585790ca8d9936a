"""What former runs left below the data folder: their snapshots, how often they come, and for a run without a lag
history their samples.
"""

import os
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from pathlib import Path
from statistics import median
from typing import Final

from planner.documents.data import SNAPSHOT
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import BadInputError
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot
from planner.runs.landed import read_sample
from planner.snapshot.settings import RECENT
from planner.storage.files import remove_file
from planner.storage.landing import files_before, samples_of_group
from planner.storage.layout import RunFolder, history_folder, is_time_name, runs_folder, time_name, time_of_name
from planner.storage.tidying import remove_leftovers, remove_run

MOST_OFFSETS: Final = 200_000
"""Of queues, in the samples of one group: about 150 MB as intervals. Of a larger group less of the past is read."""

RUNS_FOR_PERIOD: Final = 6
"""How often runs come is taken from the last ones, so that a new schedule counts within an hour or so."""

LEAST_FOR_SCHEDULE: Final = 2
"""So many times between runs show a schedule: one alone may be chance."""

REGULAR: Final = 0.5
"""By this share of the median the times between runs may differ, and still be a schedule."""

LEAST_BREAKS: Final = 2
"""So many times between two runs have to fit into a window, or its mean would rest on a single figure."""

_SETTLED_NS: Final = 1_000_000_000
"""A folder that has changed since may change again within the same tick of its file system's clock."""

_SPARE: Final = timedelta(hours=1)
"""A sample outlives its use by so much, as another run may be reading it."""


def former_samples(data: Path, policy: ConsumerScalingPolicy, until: datetime) -> tuple[GroupSample, ...]:
    """Return the group's landed samples up to ``until``, oldest first: of six hours, or the policy's longer times.

    Of a group of very many queues less is read (``MOST_OFFSETS``), but always over the policy's own times.
    """
    own = until - _own_times(policy)
    first = min(own, until - RECENT)
    samples: list[GroupSample] = []
    offsets = 0
    for sample in _newest_first(data, policy, until):
        if sample.at < first or (offsets > MOST_OFFSETS and sample.at < own):
            break
        samples.append(sample)
        offsets += len(sample.offsets)
    return tuple(reversed(samples))


def _own_times(policy: ConsumerScalingPolicy) -> timedelta:
    spec = policy.spec
    quiet_s = spec.stabilisation.seconds if spec.stabilisation else 0
    return timedelta(seconds=max(spec.window.seconds, quiet_s, spec.behavior.longest_period_s))


def former_snapshot(data: Path, policy: ConsumerScalingPolicy, at: datetime) -> GroupSnapshot | None:
    """Return the newest snapshot of the policy's group that a run of the six hours before ``at`` left, if any.

    One that cannot be read, or is of another group, is passed over.
    """
    source = policy.spec.source
    for run in _former_runs(data, at):
        path = run.snapshot(policy.metadata.name)
        if not path.exists():
            continue
        try:
            former = SNAPSHOT.read(path)
        except BadInputError:
            continue
        if (former.system, former.cluster, former.group) == (source.system, source.cluster, source.group):
            return former
    return None


def without_former_snapshot(
    data: Path, policies: Sequence[ConsumerScalingPolicy], at: datetime
) -> list[ConsumerScalingPolicy]:
    """Return the policies that no run of the six hours before ``at`` left a snapshot for; none is read."""
    fresh = list(policies)
    for run in _former_runs(data, at):
        if not fresh:
            break
        known = frozenset(run.snapshots.iterdir() if run.snapshots.is_dir() else ())
        fresh = [policy for policy in fresh if run.snapshot(policy.metadata.name) not in known]
    return fresh


def _former_runs(data: Path, at: datetime) -> Iterator[RunFolder]:
    """Yield the runs of the six hours before ``at``, the newest first."""
    oldest = time_name(at - RECENT)
    runs = takewhile(lambda run: run >= oldest, _runs_newest_first(data))
    return (RunFolder(runs_folder(data) / run) for run in runs if run < time_name(at))


def _newest_first(data: Path, policy: ConsumerScalingPolicy, until: datetime) -> Iterator[GroupSample]:
    source = policy.spec.source
    landed = samples_of_group(data, (source.system, source.cluster, source.group), time_name(until))
    # Names have the time to the millisecond only, so the sample itself has the last word.
    return (sample for sample in map(read_sample, landed) if sample.at <= until)


def gap_period_s(data: Path, policy: ConsumerScalingPolicy, until: datetime, sample_every_s: float) -> float:
    """Return the period by which gaps in the group's samples are judged, in seconds.

    Runs that come regularly sample the group at both ends of the time between them, and what arrived meanwhile is known
    exactly: that is a long period and no hole. A run that is missing is one. Where fewer than two such times fit into
    the policy's window, only the samples of a watch (``sample_every_s``) count.
    """
    period_s = run_period_s(data, until)
    if period_s is None or LEAST_BREAKS * period_s > policy.spec.window.seconds:
        return sample_every_s
    return max(sample_every_s, period_s)


def run_period_s(data: Path, until: datetime) -> float | None:
    """Return how far apart the last runs up to ``until`` ended, in seconds; ``None`` for a first run."""
    apart = _apart(_end_times(data, until))
    return median(apart) if apart else None


def schedule_period_s(data: Path, until: datetime) -> float | None:
    """Return the period by which runs come, in seconds; ``None`` where the last ones show no schedule.

    The present run, which ends at ``until``, counts. It takes two times between runs at least, none of them off by more
    than half of their median: what somebody starts by hand now and then has no period.
    """
    apart = _apart([*(time for time in _end_times(data, until) if time < until), until])
    if len(apart) < LEAST_FOR_SCHEDULE:
        return None
    middle = median(apart)
    return float(round(middle)) if all(abs(other - middle) <= REGULAR * middle for other in apart) else None


def _end_times(data: Path, until: datetime) -> list[datetime]:
    names = (name for name in _runs_newest_first(data) if name <= time_name(until))
    return [time_of_name(name) for name in islice(names, RUNS_FOR_PERIOD)][::-1]


def _apart(times: list[datetime]) -> list[float]:
    return [(after - before).total_seconds() for before, after in pairwise(times)]


def _runs_newest_first(data: Path) -> Iterator[str]:
    return filter(is_time_name, _names_newest_first(runs_folder(data)))  # as they are taken: most are never asked for


def _names_newest_first(folder: Path) -> Sequence[str]:
    """Return the names in a folder, which each policy of a run asks for: a month of runs is 86 400 of them."""
    if not folder.is_dir():
        return ()
    changed_ns = folder.stat().st_mtime_ns
    is_settled = time.time_ns() - changed_ns > _SETTLED_NS
    return (_names_as_of if is_settled else _names_as_of.__wrapped__)(folder, changed_ns)


@lru_cache(maxsize=1)
def _names_as_of(folder: Path, changed_ns: int) -> tuple[str, ...]:  # noqa: ARG001  after a change it is listed anew
    return tuple(sorted(os.listdir(folder), reverse=True))  # noqa: PTH208  names are enough


def forget(data: Path, policies: tuple[ConsumerScalingPolicy, ...], until: datetime, keep_days: int) -> None:
    """Remove runs that are older than ``keep_days`` days, and samples that no later run would read.

    A data folder with a lag history keeps its samples: packing them is the history's part. Raises ``StorageError``
    for what cannot be removed.
    """
    oldest = time_name(until - timedelta(days=keep_days))
    remove_leftovers(data)
    for name in [name for name in _runs_newest_first(data) if name < oldest]:
        remove_run(runs_folder(data) / name)
    if history_folder(data).exists():
        return
    reach = max([RECENT, *map(_own_times, policies)])
    forget_samples(data, until - reach - _SPARE)


def forget_samples(data: Path, before: datetime) -> None:
    """Remove landed samples of a time before ``before``. Raises ``StorageError`` where one cannot be removed."""
    for path in files_before(data, time_name(before)):
        remove_file(path)
