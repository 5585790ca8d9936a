"""Play every policy's group out of the lag history under other policies, cadences and prices.

    spark-submit spark_apps/backtest/app.py --data DIR --policies DIR [--history URI] [--days 14] [--until TIME]
        [--play planner,keda] [--every 60,600] [--rebalance-h 0.25] [--late-after 60,120]

Every group is played at every combination of the values; where an option is not given, with its policy's own. Writes
``<data>/backtests/<until>/rows/*.parquet``, a row for each run, and prints what each rule costs in sum, then why groups
could not be played.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession

from planner.backtest.sweep import AS_IT_WAS, Sweep
from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.policy_folder import read_policies
from planner.errors import BadInputError
from planner.storage.layout import backtest_rows, history_folder
from planner.text.printable import one_line
from planner.text.words import number
from spark_apps.backtest import options
from spark_apps.backtest.schemas import GROUP_KEY, RUNS
from spark_apps.backtest.transforms import play_groups, totals_by_rule
from spark_apps.common import arguments
from spark_apps.common.errors import finish
from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import check_version, newest_end, read_intervals
from spark_apps.common.policies import policy_frame
from spark_apps.common.session import session
from spark_apps.common.stages import Figures, counting_rows, run_stage
from spark_apps.history.schemas import HISTORY

TASKS_A_CORE = 16
"""Groups take very different times: into small tasks the work parts more evenly."""


@dataclass(frozen=True, slots=True)
class BacktestRequest:
    """What is played: so many days up to ``until``, ``None`` for the newest interval of the policies' groups."""

    days: float
    until: datetime | None
    sweep: Sweep


def main() -> None:
    """Run with the arguments of the command line."""
    given = _parser().parse_args()
    policies = read_policies(given.policies)
    location = given.history or str(history_folder(given.data))
    sweep = Sweep(given.play, given.every, given.rebalance_h, given.late_after)
    request = BacktestRequest(given.days, given.until, sweep)
    with session("backtest") as spark:
        run_stage(spark, "backtest", lambda: run_backtest(spark, given.data, policies, request, location))


def _parser() -> argparse.ArgumentParser:
    parser = arguments.parser(__doc__)
    arguments.add_policies(parser)
    parser.add_argument("--days", type=options.days, default=14.0, help="how far back, 0.02 to 60 (%(default)s)")
    parser.add_argument("--until", type=arguments.time, help="up to when (the newest interval of the policies' groups)")
    parser.add_argument(
        "--play",
        type=options.rules,
        default=options.DEFAULT_RULES,
        help="rules, with commas (planner,keda,flink,optimum)",
    )
    parser.add_argument(
        "--every", type=options.periods, default=(), help="seconds between two decisions of the planner's rules"
    )
    parser.add_argument(
        "--rebalance-h", type=options.prices, default=(), help="price of a rebalance in consumer-hours (0.25)"
    )
    parser.add_argument(
        "--late-after", type=options.waits, default=(), help="seconds that a message may wait before it is late"
    )
    return parser


def run_backtest(
    spark: SparkSession, data: Path, policies: Sequence[ConsumerScalingPolicy], request: BacktestRequest, location: str
) -> Figures:
    """Play every policy's group and print what each rule costs; return what was read and written."""
    until, rows = write_runs(spark, data, policies, request, location)
    target = backtest_rows(data, until)
    runs = spark.read.schema(RUNS).parquet(str(target))
    for line in report(runs):
        print(one_line(line))  # noqa: T201
    print(f"backtest: {rows} rows in {target}")  # noqa: T201
    return Figures({"policies": len(policies)}, {"rows": rows})


def write_runs(
    spark: SparkSession, data: Path, policies: Sequence[ConsumerScalingPolicy], request: BacktestRequest, location: str
) -> tuple[datetime, int]:
    """Write all runs afresh; return up to when was played, and how many rows that are.

    Raises ``BadInputError`` where the history has no interval of any of the groups.
    """
    history = Folder.of(spark, location)
    check_version(history)
    frame = policy_frame(spark, policies)
    until = request.until or newest_end(history, frame.select(*GROUP_KEY))
    if until is None:
        raise BadInputError(
            f"history {history.uri} has no interval of the groups of these policies: name the data folder or the URI "
            "of a history that planner run or the history app wrote for them"
        )
    since = until - timedelta(days=request.days)
    known = read_intervals(history, HISTORY, since, until)
    tasks = max(1, min(len(policies), TASKS_A_CORE * spark.sparkContext.defaultParallelism))
    written, rows = counting_rows(play_groups(frame, known, since, until, request.sweep, tasks))
    written.write.mode("overwrite").parquet(str(backtest_rows(data, until)))
    return until, rows()


def report(runs: DataFrame) -> list[str]:
    """Return the table of all rules, the cheapest first, then a line for each group that could not be played."""
    rows = totals_by_rule(runs).collect()
    rows.sort(key=lambda row: (row.rule == AS_IT_WAS, row.cost_h))
    failed = runs.where("reason is not null").select("policy", "group", "reason").collect()
    failed.sort(key=lambda row: str(row.policy))
    table = [_HEADINGS, *map(_figures, rows)] if rows else []
    reasons = [f"policy {row.policy}: group {row.group} cannot be played: {row.reason}." for row in failed]
    return [*map(_LINE.format, *zip(*table, strict=True)), *reasons]


_HEADINGS = ("rule", "every", "groups", "cost, h", "over as it was", "consumer-h", "rebalances", "late min")
_LINE = "{:<16} {:>8} {:>7} {:>13} {:>15} {:>13} {:>11} {:>9}"


def _figures(row: Row) -> tuple[str, ...]:
    """Return one rule's line of the table: hours are consumer-hours."""
    every = "–" if row.every_s is None else f"{row.every_s:g} s"
    over = f"{row.cost_h / row.past_h:.2f}" if row.past_h else "–"
    figures = (row.hours, row.rebalances, row.late_minutes)
    return row.rule, every, number(row.groups), number(row.cost_h), over, *map(number, figures)


if __name__ == "__main__":
    finish(main)
