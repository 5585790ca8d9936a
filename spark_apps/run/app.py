"""All stages of one run between observing and reporting, one after the other in one session.

    spark-submit spark_apps/run/app.py --data DIR --policies DIR --at TIME --sample-every SECONDS
        [--history URI] [--keep-days N]

Each stage does what its own app does: history, snapshot, simulate, decide, plan. What of the history no decision waits
for comes last, as the stage tidy: files of samples that are packed, small files, days that are over. What every stage
read and wrote, and how long it took, is one line each, and stands in ``<data>/runs/<run>/stages.json``. The first stage
that fails ends the app, and the sentence begins with its name; where that is tidy, the plans are there and the app ends
well: the sentence stands in that file, and the run's last task fails with it.
"""

import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from planner.documents.policy_folder import read_policies
from planner.storage.files import remove_file, write_atomically
from planner.storage.layout import TIDY, RunFolder, history_folder
from spark_apps.common import arguments
from spark_apps.common.errors import finish, sentence_on
from spark_apps.common.session import session
from spark_apps.common.stages import Figures, run_stage
from spark_apps.decide.app import run_decide
from spark_apps.history.app import add_samples, tidy_history
from spark_apps.history.packed_samples import Packed
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
    policies, packed = read_policies(given.policies), list[Packed]()

    def history() -> Figures:
        samples, figures = add_samples(spark, data, at, given.sample_every, location)
        packed.append(samples)
        return figures

    return {
        "history": history,
        "snapshot": lambda: run_snapshot(spark, data, policies, at, location),
        "simulate": lambda: run_simulate(spark, data, policies, at),
        "decide": lambda: run_decide(spark, data, policies, at),
        "plan": lambda: run_plan(spark, data, policies, at),
        TIDY: lambda: tidy_history(spark, location, packed[-1], at, given.keep_days),
    }


def run_all(spark: SparkSession, stages: Mapping[str, Callable[[], Figures]], run: RunFolder) -> None:
    """Do the stages in their order; after each the reports of all until then are in the run's folder.

    That one which nobody waits for cannot be done is its report.
    """
    reports = []
    for file in (run.stages, run.results):  # an earlier try's
        remove_file(file)
    for name, work in stages.items():
        do = _try_stage if name == TIDY else _do_stage
        reports.append(do(spark, name, work))
        write_atomically(run.stages, json.dumps(reports, indent=2) + "\n")


def _do_stage(spark: SparkSession, name: str, work: Callable[[], Figures]) -> dict[str, Any]:
    return run_stage(spark, name, work).document()


def _try_stage(spark: SparkSession, name: str, work: Callable[[], Figures]) -> dict[str, Any]:
    try:
        return _do_stage(spark, name, work)
    except Exception as error:
        sentence = sentence_on(error)
        print(f"stage {name}: {sentence}", flush=True)  # noqa: T201  this is the task's log
        return {"stage": name, "failed": sentence}


if __name__ == "__main__":
    finish(main)
