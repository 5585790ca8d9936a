"""All stages of one run between observing and reporting, one after the other in one session.

    spark-submit spark_apps/run/app.py --data DIR --policies DIR --at TIME --sample-every SECONDS
        [--history URI] [--keep-days N]

Each stage does what its own app does: history, snapshot, simulate, decide, plan. What every stage read and wrote, and
how long it took, is one line each, and stands in ``<data>/runs/<run>/stages.json``. The first stage that fails ends the
app, and the sentence begins with its name.
"""

import json
from argparse import Namespace
from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from planner.documents.policy import read_policies
from planner.storage.files import remove_file, write_atomically
from planner.storage.layout import RunFolder, history_folder
from spark_apps.common import arguments
from spark_apps.common.errors import finish
from spark_apps.common.session import session
from spark_apps.common.stages import Figures, run_stage
from spark_apps.decide.app import run_decide
from spark_apps.history.app import run_history
from spark_apps.plan.app import run_plan
from spark_apps.simulate.app import run_simulate
from spark_apps.snapshot.app import run_snapshot


def main() -> None:
    """Run with the arguments of the command line."""
    parser = arguments.run_parser(__doc__)
    arguments.add_history_arguments(parser)
    given = parser.parse_args()
    with session("run") as spark:
        run_all(spark, stages_of(spark, given), RunFolder.of(given.data, given.at))


def stages_of(spark: SparkSession, given: Namespace) -> Mapping[str, Callable[[], Figures]]:
    """Return what each stage does, in their order. Raises ``BadInputError`` for a folder without usable policies."""
    data, at, location = given.data, given.at, given.history or str(history_folder(given.data))
    policies = read_policies(given.policies)
    return {
        "history": lambda: run_history(spark, data, at, given.sample_every, location, given.keep_days),
        "snapshot": lambda: run_snapshot(spark, data, policies, at, location),
        "simulate": lambda: run_simulate(spark, data, policies, at),
        "decide": lambda: run_decide(spark, data, policies, at),
        "plan": lambda: run_plan(spark, data, policies, at),
    }


def run_all(spark: SparkSession, stages: Mapping[str, Callable[[], Figures]], run: RunFolder) -> None:
    """Do the stages in their order; after each the reports of all until then are in the run's folder."""
    reports = []
    remove_file(run.stages)  # an earlier try's
    for name, work in stages.items():
        reports.append(run_stage(spark, name, work).document())
        write_atomically(run.stages, json.dumps(reports, indent=2) + "\n")


if __name__ == "__main__":
    finish(main)
