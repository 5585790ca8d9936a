"""What former runs left below the data folder, for a run that has no lag history: samples, and how often runs come."""

import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

from planner.documents.data import SAMPLE
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import StorageError
from planner.model.samples import GroupSample
from planner.snapshot.build import RECENT
from planner.storage.layout import (
    group_folder,
    history_folder,
    is_time_name,
    runs_folder,
    samples_folder,
    time_name,
    time_of_name,
)

MOST_OFFSETS: Final = 200_000
"""Of queues, in the samples of one group: about 150 MB as intervals. Of a larger group less of the past is read."""

RUNS_FOR_PERIOD: Final = 6
"""How often runs come is taken from the last ones, so that a new schedule counts within an hour or so."""

LEAST_BREAKS: Final = 2
"""So many times between two runs have to fit into a window, or its mean would rest on a single figure."""

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
    quiet = policy.spec.stabilisation
    return timedelta(seconds=max(policy.spec.window.seconds, quiet.seconds if quiet else 0))


def _newest_first(data: Path, policy: ConsumerScalingPolicy, until: datetime) -> Iterator[GroupSample]:
    source = policy.spec.source
    folder = group_folder(data, source.system, source.cluster, source.group)
    paths = [path for path in folder.glob("*.json") if is_time_name(path.stem) and path.stem <= time_name(until)]
    # Names have the time to the millisecond only, so the sample itself has the last word.
    return (sample for sample in map(SAMPLE.read, sorted(paths, reverse=True)) if sample.at <= until)


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
    names = sorted(name for name in _run_names(data) if name <= time_name(until))[-RUNS_FOR_PERIOD:]
    end_times = [time_of_name(name) for name in names]
    apart = [(after - before).total_seconds() for before, after in pairwise(end_times)]
    return median(apart) if apart else None


def _run_names(data: Path) -> Iterator[str]:
    return (path.name for path in runs_folder(data).glob("*") if is_time_name(path.name))


def forget(data: Path, policies: tuple[ConsumerScalingPolicy, ...], until: datetime, keep_days: int) -> None:
    """Remove runs that are older than ``keep_days`` days, and samples that no later run would read.

    A data folder with a lag history keeps its samples: packing them is the history's part.
    """
    oldest = time_name(until - timedelta(days=keep_days))
    for name in [name for name in _run_names(data) if name < oldest]:
        shutil.rmtree(runs_folder(data) / name, ignore_errors=True)
    if history_folder(data).exists():
        return
    reach = max([RECENT, *map(_own_times, policies)])
    forget_samples(data, until - reach - _SPARE)


def forget_samples(data: Path, before: datetime) -> None:
    """Remove landed samples of a time before ``before``. Raises ``StorageError`` where one cannot be removed."""
    for path in samples_folder(data).glob("*/*/*/*.json"):
        if is_time_name(path.stem) and path.stem < time_name(before):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise StorageError(
                    f"{path} is of no use any more and cannot be removed ({error.strerror}): check its permissions"
                ) from error
