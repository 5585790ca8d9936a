"""From the lag history to every run of every group: the planner's own functions, one group at a time."""

from collections.abc import Callable, Sequence
from dataclasses import astuple
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows

from planner.backtest.compare import grids_of
from planner.backtest.history_tracks import HistorySpans, tracks_of_history
from planner.backtest.recorded import NotPlayable, recorded_load
from planner.backtest.scenario import Floats
from planner.backtest.sweep import AS_IT_WAS, Sweep, play_sweep
from planner.backtest.tracks import GroupTracks, MemberTrack
from planner.compiled import fastest_model
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import PlannerError
from planner.isolation import attempt
from planner.model.queues import RETRY_PREFIX, MessageQueue, Queue, TopicPartition
from planner.runs.recorded_past import first_reading, not_played, play_settings
from spark_apps.backtest.schemas import GROUP_KEY, QUEUE_KEY, RUNS, SPAN_COLUMNS, TOTALS
from spark_apps.common.policies import policy_of

SAMPLED = "sample"
"""The ``source`` of rows out of samples; those of metrics do not know who owns a queue."""

Row = tuple[object, ...]


def play_groups(
    policies: DataFrame, history: DataFrame, since: datetime, until: datetime, sweep: Sweep, tasks: int
) -> DataFrame:
    """Return ``RUNS``: every run of every policy's group over the time behind ``since`` and up to ``until``.

    A group that cannot be played is one row with its reason. Groups are parted into ``tasks`` tasks, and one group at a
    time is in an executor's memory.
    """
    rows = history.where(F.col("queue_id").isNotNull() & (F.col("ended_at") <= F.lit(until))).join(
        F.broadcast(policies.select(*GROUP_KEY)), on=list(GROUP_KEY), how="left_semi"
    )
    readings = rows.transform(queue_spans).unionByName(rows.transform(member_counts), allowMissingColumns=True)
    left, right = (frame.repartition(tasks, *GROUP_KEY).groupBy(*GROUP_KEY) for frame in (policies, readings))
    return left.cogroup(right).applyInPandas(_player(since, until, sweep), RUNS)


def queue_spans(rows: DataFrame) -> DataFrame:
    """Return what a backtest plays of each queue's intervals: group and ``SPAN_COLUMNS``, no retry queues."""
    return rows.where(~F.col("topic").startswith(RETRY_PREFIX)).select(
        *GROUP_KEY,
        *QUEUE_KEY,
        _seconds("ended_at").alias("ends"),
        "seconds",
        F.col("arrival_rate").alias("arrival"),
        F.col("consumption_rate").alias("consumption"),
        F.col("lag").cast("double").alias("lag"),
    )


def member_counts(rows: DataFrame) -> DataFrame:
    """Return how many members each group had at the end of each span: group, ``ends``, ``seconds``, ``members``.

    These are the distinct owners of all of its queues: a member without a queue is not counted. Rows out of metrics do
    not show owners and are left out.
    """
    is_sampled = F.coalesce(F.col("source"), F.lit(SAMPLED)) == SAMPLED
    owners = rows.where(is_sampled).select(*GROUP_KEY, "ended_at", "seconds", F.explode_outer("owners").alias("owner"))
    counts = owners.groupBy(*GROUP_KEY, "ended_at").agg(
        F.countDistinct("owner").cast("double").alias("members"), F.min("seconds").alias("seconds")
    )
    return counts.select(*GROUP_KEY, _seconds("ended_at").alias("ends"), "seconds", "members")


def _seconds(column: str) -> Column:
    """Return a time as seconds since 1970."""
    return F.unix_micros(column) / F.lit(1e6)


def _player(since: datetime, until: datetime, sweep: Sweep) -> Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]:
    def play(policies: pd.DataFrame, readings: pd.DataFrame) -> pd.DataFrame:
        rows = [row for policy in policies.itertuples() for row in play_policy(policy_of(policy), readings)]
        return pd.DataFrame(rows, columns=RUNS.fieldNames())

    def play_policy(policy: ConsumerScalingPolicy, readings: pd.DataFrame) -> Sequence[Row]:
        name, group = policy.metadata.name, policy.spec.source.group
        runs = attempt(name, "backtest", play_group, policy, readings)
        if isinstance(runs, PlannerError | NotPlayable):
            reason = runs.reason if isinstance(runs, NotPlayable) else str(runs)
            return [(name, group, *(None for _ in RUNS.names[2:-1]), _advice(reason))]
        return [(name, group, *astuple(run), None) for run in runs]

    def play_group(policy: ConsumerScalingPolicy, readings: pd.DataFrame) -> Sequence[Any] | NotPlayable:
        source, settings = policy.spec.source, play_settings(policy)
        if (reason := not_played(settings, source.system)) is not None:
            return NotPlayable(source.group, reason)
        tracks = tracks_of_readings(source.system, source.group, readings)
        if isinstance(tracks, str):
            return NotPlayable(source.group, tracks)
        load = partial(recorded_load, tracks, first_reading(tracks, since), until)
        return play_sweep(load, settings, sweep, grids_of(fastest_model()))

    return play


def _advice(reason: str) -> str:
    return reason.replace("--capacity GROUP=MESSAGES_PER_SECOND", "spec.capacity.messagesPerSecond of its policy")


def tracks_of_readings(system: str, group: str, readings: pd.DataFrame) -> GroupTracks | str:
    """Return one group's past out of the rows of ``queue_spans`` and ``member_counts``, or why it shows too little."""
    is_span = readings["members"].isna()
    counted = readings[~is_span]
    counts = MemberTrack(*(_floats(counted, name) for name in ("ends", "seconds", "members")))
    return tracks_of_history(system, group, spans_of(readings[is_span]), counts)


def spans_of(frame: pd.DataFrame) -> HistorySpans:
    """Return the rows as arrays, with each queue once; null is NaN."""
    key = list(QUEUE_KEY)
    firsts = frame[key].drop_duplicates().itertuples(index=False, name=None)
    queues = [_queue(topic, broker, int(number)) for topic, broker, number in firsts]
    numbers = np.asarray(frame.groupby(key, sort=False).ngroup(), dtype=np.intp)
    ends, seconds, arrival, consumption, lag = (_floats(frame, name) for name in SPAN_COLUMNS[len(QUEUE_KEY) :])
    return HistorySpans(queues, numbers, ends, seconds, arrival, consumption, lag)


def _queue(topic: str, broker: str, number: int) -> Queue:
    return MessageQueue(topic, broker, number) if broker else TopicPartition(topic, number)


def _floats(frame: pd.DataFrame, name: str) -> Floats:
    return frame[name].to_numpy(dtype=np.float64, na_value=np.nan)


def totals_by_rule(runs: DataFrame) -> DataFrame:
    """Return for each rule and cadence what the cheapest tunings cost in sum over all groups and settings.

    Columns: ``rule``, ``every_s``, ``groups``, ``TOTALS``, and ``past_h``: what the same groups cost as it was.
    """
    best = runs.where("cheapest")
    past = best.where(F.col("rule") == AS_IT_WAS).select(
        "policy", "rebalance_h", "late_after_s", F.col("cost_h").alias("past_h")
    )
    return (
        best.join(past, on=["policy", "rebalance_h", "late_after_s"], how="left")
        .groupBy("rule", "every_s")
        .agg(F.countDistinct("policy").alias("groups"), *(F.sum(name).alias(name) for name in (*TOTALS, "past_h")))
    )
