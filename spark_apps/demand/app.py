"""Say what the load of every policy's group may be in the next two hours, and how such forecasts did.

    spark-submit spark_apps/demand/app.py --data DIR --policies DIR [--history URI] [--at TIME]

The load comes out of the lag history of the week before. Writes ``<data>/demand/<at>/rows/*.parquet``, a row for each
group and stretch of time, and prints how the forecasts of all groups did, then why a group has none.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows

from planner.demand.outlook import BAND
from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.policy_folder import read_policies
from planner.errors import BadInputError
from planner.model.past_load import LONGEST_PAST
from planner.storage.layout import demand_rows, history_folder
from planner.text.printable import one_line
from planner.text.words import number, percent
from spark_apps.common import arguments
from spark_apps.common.errors import finish
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import check_version, newest_end, read_intervals
from spark_apps.common.policies import policy_frame
from spark_apps.common.session import session
from spark_apps.common.stages import Figures, counting_rows, run_stage
from spark_apps.demand.schemas import GROUP_KEY, STRETCHES
from spark_apps.demand.transforms import minute_loads, outlooks
from spark_apps.history.schemas import HISTORY


def main() -> None:
    """Run with the arguments of the command line."""
    parser = arguments.parser(__doc__)
    arguments.add_policies(parser)
    parser.add_argument("--at", type=arguments.time, help="as of when (the newest interval of the policies' groups)")
    given = parser.parse_args()
    policies = read_policies(given.policies)
    location = given.history or str(history_folder(given.data))
    with session("demand") as spark:
        run_stage(spark, "demand", lambda: run_demand(spark, given.data, policies, given.at, location))


def run_demand(
    spark: SparkSession, data: Path, policies: Sequence[ConsumerScalingPolicy], at: datetime | None, location: str
) -> Figures:
    """Write what every group's load may be and print how such forecasts did; return what was read and written."""
    until, rows = write_outlooks(spark, data, policies, at, location)
    target = demand_rows(data, until)
    for line in report(spark.read.schema(STRETCHES).parquet(str(target))):
        print(one_line(line))  # noqa: T201
    print(f"demand: {rows} rows in {target}")  # noqa: T201
    return Figures({"policies": len(policies)}, {"rows": rows})


def write_outlooks(
    spark: SparkSession, data: Path, policies: Sequence[ConsumerScalingPolicy], at: datetime | None, location: str
) -> tuple[datetime, int]:
    """Write all rows afresh; return the time as of which they are, and how many they are.

    Raises ``BadInputError`` where the history has no interval of any of the groups.
    """
    history = Folder.of(spark, location)
    check_version(history)
    frame = policy_frame(spark, policies)
    keys = frame.select(*GROUP_KEY).distinct()
    until = at or newest_end(history, keys)
    if until is None:
        raise BadInputError(
            f"history {history.uri} has no interval of the groups of these policies: name the data folder or the URI "
            "of a history that planner run or the history app wrote for them"
        )
    since = until - LONGEST_PAST
    rows = read_intervals(history, HISTORY, since, until).where(F.col("ended_at") <= F.lit(until))
    known = minute_loads(rows.join(F.broadcast(keys), on=list(GROUP_KEY), how="left_semi"), since)
    written, count = counting_rows(outlooks(frame, known, until))
    written.write.mode("overwrite").parquet(str(demand_rows(data, until)))
    return until, count()


def report(rows: DataFrame) -> list[str]:
    """Return the table of all stretches, then a line for each group without a forecast."""
    stretches = (
        rows.where("reason is null")
        .groupBy("from_minutes", "to_minutes")
        .agg(
            F.count(F.lit(1)).alias("groups"),
            F.sum("forecasts").alias("forecasts"),
            F.sum("inside").alias("inside"),
            F.percentile_approx("level_miss", 0.5).alias("level_miss"),
            F.count_if(F.col("widened") > 1).alias("widened"),
        )
        .sort("from_minutes")
        .collect()
    )
    failed = rows.where("reason is not null").select("policy", "group", "reason").collect()
    failed.sort(key=lambda row: str(row.policy))
    table = [_LINE.format(*line) for line in [_HEADINGS, *map(_figures, stretches)]] if stretches else []
    reasons = [f"policy {row.policy}: group {row.group} has no forecast: {row.reason}." for row in failed]
    return [*table, *reasons]


_HEADINGS = (
    "minutes ahead",
    "groups",
    "earlier forecasts",
    f"inside (promised {percent((BAND[1] - BAND[0]) / 100)})",
    "level's usual miss",
    "bands widened",
)
_LINE = "{:<14} {:>7} {:>18} {:>23} {:>19} {:>14}"


def _figures(row: Row) -> tuple[str, ...]:
    """Return one stretch's line of the table."""
    inside = percent(row.inside / row.forecasts) if row.forecasts else "–"
    miss = "–" if row.level_miss is None else percent(row.level_miss)
    ahead = f"{row.from_minutes}–{row.to_minutes}"
    return ahead, number(row.groups), number(row.forecasts), inside, miss, number(row.widened)


if __name__ == "__main__":
    finish(main)
