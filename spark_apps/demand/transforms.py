"""From the lag history to the load of every minute, and from that to what it may be: the planner's own functions."""

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple
from datetime import datetime

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows

from planner.demand.outlook import Outlook, outlook_of
from planner.demand.past import EPOCH, ClockMinutes, past_up_to
from planner.demand.recent import load_of_past
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import BadInputError, PlannerError
from planner.isolation import attempt
from planner.model.past_load import LONGEST_PAST, MINUTE
from planner.model.queues import RETRY_PREFIX
from spark_apps.common.policies import policy_of
from spark_apps.demand.schemas import GROUP_KEY, STRETCHES

MINUTE_US = 60_000_000
LEAST_COVERED = 0.95
"""A minute is known where its queues were observed for at least this part of it."""

Row = tuple[object, ...]


def minute_loads(intervals: DataFrame, since: datetime) -> DataFrame:
    """Return what came for each group in each minute of the clock from ``since`` on: group and ``MINUTE_COLUMNS``.

    A queue's messages are spread evenly over its own interval, so that a sample that misses a queue takes nothing away.
    A minute that is not observed as a whole, in which an offset was reset, or whose rate is no finite number has none.
    Retry topics are left out.
    """
    is_retry = F.coalesce(F.col("topic").startswith(RETRY_PREFIX), F.lit(False))
    spans = (
        intervals.where(~is_retry)
        .select(*GROUP_KEY, _micros("started_at").alias("begin"), _micros("ended_at").alias("end"), "arrival_rate")
        .where((F.col("end") > F.col("begin")) & (F.col("end") - F.col("begin") <= LONGEST_PAST // MINUTE * MINUTE_US))
        .groupBy(*GROUP_KEY, "begin", "end")
        .agg(
            F.sum("arrival_rate").alias("rate"),
            F.count(F.lit(1)).alias("queues"),
            F.bool_and(F.coalesce(F.col("arrival_rate") < F.lit(math.inf), F.lit(False))).alias("is_known"),
        )
    )
    first = F.greatest(_minute("begin"), F.lit((since - EPOCH) // MINUTE))
    parts = spans.withColumn("minute", F.explode(F.sequence(first, F.greatest(first, _minute("end", -1)))))
    overlap = _overlap()
    minutes = parts.groupBy(*GROUP_KEY, "minute").agg(
        F.sum(F.col("rate") * overlap).alias("rate"),
        F.bool_and("is_known").alias("is_known"),
        (F.sum(F.col("queues") * overlap) / F.max("queues")).alias("covered"),
        F.bool_or(_is_own()).alias("is_own"),
    )
    is_known = F.col("is_known") & (F.col("covered") >= LEAST_COVERED)
    rate = F.when(is_known, F.greatest(F.col("rate"), F.lit(0.0)))
    return minutes.select(*GROUP_KEY, "minute", rate.alias("rate"), (~F.col("is_own")).alias("averaged"))


def _micros(column: str) -> Column:
    return F.unix_micros(column)


def _minute(column: str, more: int = 0) -> Column:
    """Return the minute of the clock in which a time in microseconds lies."""
    return F.floor((F.col(column) + more) / F.lit(MINUTE_US)).cast("long")


def _overlap() -> Column:
    """Return the part of a minute that a span covers."""
    begin = F.col("minute") * MINUTE_US
    covered = F.least(F.col("end"), begin + MINUTE_US) - F.greatest(F.col("begin"), begin)
    return F.greatest(covered, F.lit(0)) / F.lit(float(MINUTE_US))


def _is_own() -> Column:
    """Return whether a span says something of its own of a minute: it is short, or that is its first whole one."""
    first_whole = F.ceil(F.col("begin") / F.lit(MINUTE_US)).cast("long")
    is_short = (first_whole + 1) * MINUTE_US > F.col("end")
    return is_short | (F.col("minute") == first_whole)


def clock_minutes(frame: pd.DataFrame) -> ClockMinutes:
    """Return the rows of ``MINUTE_COLUMNS`` by minute."""
    rates = (None if pd.isna(rate) else float(rate) for rate in frame["rate"])
    return dict(zip(frame["minute"].astype(int), zip(rates, frame["averaged"].astype(bool), strict=True), strict=True))


def outlooks(policies: DataFrame, minutes: DataFrame, at: datetime) -> DataFrame:
    """Return ``STRETCHES``: what the load of every policy's group may be from ``at`` on, out of ``minute_loads``."""
    left, right = (frame.groupBy(*GROUP_KEY) for frame in (policies, minutes))
    return left.cogroup(right).applyInPandas(_forecaster(at), STRETCHES)


def _forecaster(at: datetime) -> Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]:
    def forecast(policies: pd.DataFrame, minutes: pd.DataFrame) -> pd.DataFrame:
        rows = [row for policy in policies.itertuples() for row in rows_of_policy(policy_of(policy), minutes)]
        return pd.DataFrame(rows, columns=STRETCHES.fieldNames())

    def rows_of_policy(policy: ConsumerScalingPolicy, minutes: pd.DataFrame) -> Sequence[Row]:
        name, group = policy.metadata.name, policy.spec.source.group
        outlook = attempt(name, "demand", outlook_of_policy, policy, minutes, at)
        if isinstance(outlook, PlannerError):
            return [(name, group, *(None for _ in STRETCHES.names[2:-1]), str(outlook))]
        whole = (name, group, outlook.level, outlook.minutes, outlook.rests_on_errors)
        return [(*whole, *astuple(stretch), None) for stretch in outlook.stretches]

    return forecast


def outlook_of_policy(policy: ConsumerScalingPolicy, minutes: pd.DataFrame, at: datetime) -> Outlook:
    """Return what the policy's load may be.

    Raises ``BadInputError`` where the last minutes before ``at`` are unknown.
    """
    past = past_up_to(clock_minutes(minutes), at)
    load = load_of_past(past, at) if past is not None else None
    outlook = outlook_of(load, at, policy.objective.events) if load is not None else None
    if outlook is None:
        raise BadInputError(
            f"the lag history does not know its load up to {at.isoformat()}: run planner run or planner sample until "
            "then, or name an --at that the history reaches"
        )
    return outlook
