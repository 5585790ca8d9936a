"""From history to snapshots: the planner's own function, one group at a time."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows

from planner.documents.data import SAMPLE
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import BadInputError, PlannerError
from planner.history.rates import REACH_FACTOR
from planner.isolation import attempt
from planner.model.intervals import QueueInterval
from planner.model.queues import MessageQueue, Queue, TopicPartition
from planner.model.samples import GroupSample
from planner.runs.landed import newest_sample
from planner.runs.past_runs import former_snapshot
from planner.runs.policy_stages import give_up, snapshot_of_history, write_snapshot
from planner.snapshot.settings import RECENT
from planner.storage.landing import GroupKey
from planner.storage.layout import RunFolder
from spark_apps.common.policies import policy_of
from spark_apps.demand.schemas import MINUTE_COLUMNS
from spark_apps.demand.transforms import clock_minutes
from spark_apps.snapshot.schemas import GROUP_KEY, INTERVAL_COLUMNS, RESULTS

MINUTE_COLUMN = MINUTE_COLUMNS[0]
NO_MINUTES = pd.DataFrame(columns=MINUTE_COLUMNS)


def reach(policies: Sequence[ConsumerScalingPolicy]) -> timedelta:
    """Return how far back the history is needed: the longest window with its gaps, and the overview of the past."""
    windows = (timedelta(seconds=REACH_FACTOR * policy.snapshot_settings.window_s) for policy in policies)
    return max(RECENT, *windows)


def key_of(policy: ConsumerScalingPolicy) -> GroupKey:
    """Return the key of the policy's group."""
    source = policy.spec.source
    return source.system, source.cluster, source.group


def write_snapshots(
    policies: DataFrame,
    history: DataFrame,
    days: DataFrame | None,
    data: Path,
    run: RunFolder,
    at: datetime,
    packed: Mapping[GroupKey, str],
    unread: Mapping[str, str],
) -> DataFrame:
    """Write each policy's snapshot as of ``at`` and return ``RESULTS``, one row a policy.

    ``days`` are the ``minute_loads`` of groups without a former snapshot.

    A snapshot starts from the newest landed sample, else from the group's document in ``packed``. A policy whose group
    has neither, or could not be read in this run (``unread``, with the reason, by the policy's name), gets its reason
    instead of a snapshot, the others go on.
    """
    intervals = (
        history.where((F.col("ended_at") <= F.lit(at)) & F.col("queue_id").isNotNull())
        .join(policies.select(*GROUP_KEY), on=list(GROUP_KEY), how="left_semi")
        .select(*GROUP_KEY, *INTERVAL_COLUMNS)
    )
    rows = intervals if days is None else intervals.unionByName(days, allowMissingColumns=True)
    by_group = policies.groupBy(*GROUP_KEY).cogroup(rows.groupBy(*GROUP_KEY))
    return by_group.applyInPandas(_writer(data, run, at, packed, unread), RESULTS)


def _writer(
    data: Path, run: RunFolder, at: datetime, packed: Mapping[GroupKey, str], unread: Mapping[str, str]
) -> Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]:
    def write(policies: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
        results = [write_policy(policy_of(row), rows) for row in policies.itertuples()]
        return pd.DataFrame(results, columns=RESULTS.fieldNames())

    def write_policy(policy: ConsumerScalingPolicy, rows: pd.DataFrame) -> tuple[str, str | None]:
        name = policy.metadata.name
        result = attempt(name, "snapshot", take, policy, rows)
        return name, give_up(run, name, result) if isinstance(result, PlannerError) else result

    def take(policy: ConsumerScalingPolicy, rows: pd.DataFrame) -> None:
        if (problem := unread.get(policy.metadata.name)) is not None:
            raise BadInputError(problem)
        newest, former = _newest(data, policy, at, packed), former_snapshot(data, policy, at)
        intervals, days = _parted(rows)
        snapshot = snapshot_of_history(policy, newest, intervals_of(intervals), at, former, clock_minutes(days))
        write_snapshot(run, policy.metadata.name, snapshot)

    return write


def _parted(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows that are intervals, and those that are minutes of the days before."""
    if MINUTE_COLUMN not in rows:
        return rows, NO_MINUTES
    is_minute = rows[MINUTE_COLUMN].notna()
    return rows[~is_minute], rows[is_minute]


def _newest(
    data: Path, policy: ConsumerScalingPolicy, at: datetime, packed: Mapping[GroupKey, str]
) -> GroupSample | None:
    key = key_of(policy)
    landed = newest_sample(data, key, at)
    return (
        SAMPLE.parse(packed[key], f"packed sample of group {key[-1]}") if landed is None and key in packed else landed
    )


def intervals_of(frame: pd.DataFrame) -> tuple[QueueInterval, ...]:
    """Return the rows as intervals by queue and time, as ``planner.history.intervals`` orders them."""
    started, ended = _times(frame["started_at"]), _times(frame["ended_at"])
    intervals = (
        QueueInterval(
            queue=_queue(row),
            started_at=started_at,
            ended_at=ended_at,
            seconds=row.seconds,
            broker_offset=int(row.broker_offset),
            consumer_offset=_whole(row.consumer_offset),
            lag=_whole(row.lag),
            arrived=int(row.arrived),
            consumed=_whole(row.consumed),
            is_gap=bool(row.is_gap),
            commit_age_s=None if pd.isna(row.commit_age_s) else row.commit_age_s,
            owners=tuple(row.owners),
            lag_s=None if pd.isna(row.lag_s) else row.lag_s,
            lag_s_is_least=bool(row.lag_s_is_least),
            moved_from=() if row.moved_from is None else tuple(row.moved_from),
        )
        for row, started_at, ended_at in zip(_rows(frame), started, ended, strict=True)
    )
    return tuple(sorted(intervals, key=lambda interval: (interval.queue, interval.ended_at)))


def _queue(row: Any) -> Queue:
    number = int(row.queue_id)
    return MessageQueue(row.topic, row.broker, number) if row.broker else TopicPartition(row.topic, number)


def _whole(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)


def _rows(frame: pd.DataFrame) -> Any:
    return frame.itertuples(index=False)


def _times(column: "pd.Series[Any]") -> list[datetime]:
    """Return plain datetimes in UTC: pandas' own would carry nanoseconds into the documents."""
    naive: list[datetime] = column.to_numpy(dtype="datetime64[us]").astype(object).tolist()
    return [at.replace(tzinfo=UTC) for at in naive]
