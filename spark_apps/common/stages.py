"""One stage of a run: it prints what it read, what it wrote and how long it took; a failure names it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows

from spark_apps.common.errors import name_stage


@dataclass(frozen=True, slots=True)
class Figures:
    """What a stage read and what it wrote: counts, by the plural of what is counted."""

    read: Mapping[str, int]
    written: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StageReport:
    """A stage that is done: its figures, and its time in seconds."""

    stage: str
    figures: Figures
    seconds: float

    def document(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {"stage": self.stage, **asdict(self.figures), "seconds": round(self.seconds, 1)}

    def sentence(self) -> str:
        """Return the report as one line for people."""
        return f"{_list_counts(self.figures.read)} -> {_list_counts(self.figures.written)} in {self.seconds:.1f} s"


def run_stage(spark: SparkSession, name: str, work: Callable[[], Figures]) -> StageReport:
    """Do the stage's work, print its report as one line and return it. An error goes on with the stage's name on it."""
    spark.sparkContext.setJobDescription(f"stage {name}")
    begun = time.monotonic()
    with name_stage(name):
        figures = work()
    report = StageReport(name, figures, time.monotonic() - begun)
    print(f"stage {name}: {report.sentence()}", flush=True)  # noqa: T201  this is the task's log
    return report


def counting_rows(frame: DataFrame) -> tuple[DataFrame, Callable[[], int]]:
    """Return the frame and a function: how many rows it had, once it was written or collected.

    They are counted in passing, without another pass. An empty input that Spark left out of its plan is no row.
    """
    observation = Observation()
    counting = frame.observe(observation, F.count(F.lit(1)).alias("rows"))
    return counting, lambda: int(observation.get.get("rows", 0))


def _list_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {noun}" for noun, count in counts.items())
