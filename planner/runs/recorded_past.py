"""A policy's group as it was, out of the samples that runs and ``planner sample`` left: what a backtest plays."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import ceil
from pathlib import Path
from typing import Final

from planner.backtest.owners import strategy_names
from planner.backtest.recorded import NotPlayable, PlaySettings, RecordedGroup, recorded_load
from planner.backtest.scenario import STEP_S
from planner.backtest.tracks import GroupTracks, tracks_of_samples
from planner.documents.policy import ConsumerScalingPolicy
from planner.model.samples import GroupSample
from planner.runs.landed import read_sample
from planner.storage.landing import GroupKey, samples_of_group
from planner.storage.layout import time_name, time_of_name

APART: Final = timedelta(seconds=60)
"""Of samples that come more often one a minute is read: a backtest plays whole minutes."""


def past_of_samples(
    data: Path, key: GroupKey, since: datetime, until: datetime, settings: PlaySettings
) -> RecordedGroup | NotPlayable:
    """Return a group's past between the two times by the samples below ``data``, or why it cannot be played.

    Raises ``BadInputError`` for a sample that cannot be read.
    """
    system, _, group = key
    if (reason := not_played(settings, system)) is not None:
        return NotPlayable(group, reason)
    tracks = tracks_of_samples(_samples_apart(data, key, since, until))
    if isinstance(tracks, str):
        return NotPlayable(group, f"{tracks}: name the --data folder and --until of its runs")
    return recorded_load(tracks, first_reading(tracks, since), until, settings)


def first_reading(tracks: GroupTracks, since: datetime) -> datetime:
    """Return the end of the first span in which members were counted, ``since`` where that is later."""
    return datetime.fromtimestamp(max(since.timestamp(), float(tracks.members.ends[0])), since.tzinfo)


def play_settings(policy: ConsumerScalingPolicy) -> PlaySettings:
    """Return what a policy states of its group and its rule; counts are of consumers, not of pods."""
    spec = policy.spec
    each, objective = spec.members_per_pod or 1, spec.objective
    return PlaySettings(
        capacity=spec.capacity.messages_per_second if spec.capacity else None,
        pod_start_s=objective.pod_start_seconds,
        late_after_s=objective.late_after_seconds,
        every_s=STEP_S * ceil(objective.decided_every_s / STEP_S),
        strategy=spec.strategy,
        lowest=max(1, each * spec.min_replicas),
        highest=each * spec.max_replicas,
    )


def not_played(settings: PlaySettings, system: str) -> str | None:
    """Return why a strategy cannot be played, ``None`` for one that can."""
    known = strategy_names(system)
    if settings.strategy is None or settings.strategy in known:
        return None
    return f"a backtest plays {', '.join(known)}, and the group's strategy is {settings.strategy}"


def _samples_apart(data: Path, key: GroupKey, since: datetime, until: datetime) -> Iterator[GroupSample]:
    """Yield the group's samples of that time, the newest first, each at least ``APART`` from the one before."""
    newer: datetime | None = None
    for landed in samples_of_group(data, key, time_name(until)):
        at = time_of_name(landed.time_name)
        if at < since:
            return
        if newer is None or newer - at >= APART:
            newer = at
            yield read_sample(landed)
