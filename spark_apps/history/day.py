"""One day of the history: its samples are packed, its intervals derived, its states continued."""

from collections.abc import Sequence
from datetime import date
from itertools import groupby

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows

from planner.storage.landing import (
    GroupKey,
    LandedSample,
)
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import (
    STATES_TABLE,
    Change,
    day_name,
    read_states,
)
from spark_apps.common.stages import counting_rows
from spark_apps.history.schemas import BATCHES, STATES
from spark_apps.history.transforms import (
    SAMPLED,
    continue_states,
    derive_intervals,
    read_documents,
    read_traces,
)

FILES_A_BATCH = 200


def pack_day(history: Folder, day: date, system: str, samples: Sequence[LandedSample], sample_every_s: float) -> int:
    """Add one day's samples of one system, and let the history hold them from now on; return how many intervals."""
    batches = batches_of(history.spark, samples)
    traces = read_traces(batches).persist()
    change = Change(history)
    last = max(sample.time_name for sample in samples)
    try:
        intervals = add_day(change, day, system, traces, sample_every_s, f"{SAMPLED}-{last}")
        change.write(traces.drop("system"), "traces", *_folder(day, system), source=SAMPLED)
        change.write(read_documents(batches).drop("system"), "samples", *_folder(day, system), source=SAMPLED)
        change.commit()
    finally:
        traces.unpersist()
    return intervals


def add_day(
    change: Change, day: date, system: str, traces: DataFrame, sample_every_s: float, source: str = SAMPLED
) -> int:
    """Let a change add what one day's traces of one system say; return how many intervals that are."""
    states = read_states(change.history, STATES)
    intervals, rows = counting_rows(derive_intervals(traces, states.where(F.col("system") == system), sample_every_s))
    change.write(intervals.drop("system"), "intervals", *_folder(day, system), source=source)
    change.delete(change.history.under(STATES_TABLE).files())
    change.write(continue_states(traces, states, sample_every_s), STATES_TABLE, source=SAMPLED)
    return rows()


def _folder(day: date, system: str) -> tuple[str, str]:
    return day_name(day), f"system={system}"


def batches_of(spark: SparkSession, samples: Sequence[LandedSample]) -> DataFrame:
    """Return where the samples lie, in batches of one group each, spread over the executors."""
    rows: list[tuple[list[str]]] = []
    for _, of_group in groupby(sorted(samples, key=lambda sample: (sample.key, sample.time_name)), key=_group):
        paths = [sample.location for sample in of_group]
        rows.extend((paths[first : first + FILES_A_BATCH],) for first in range(0, len(paths), FILES_A_BATCH))
    tasks = max(spark.sparkContext.defaultParallelism, len(samples) // FILES_A_BATCH)
    return spark.createDataFrame(rows, BATCHES).repartition(min(tasks, len(rows)))


def _group(sample: LandedSample) -> GroupKey:
    return sample.key
