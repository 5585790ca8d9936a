"""From decisions to plans: the planner's own function, one policy at a time."""

import json
from collections.abc import Callable, Iterator

import pandas as pd
from pyspark.sql import DataFrame

from planner.runs.plan import plan_policy
from planner.storage.run import DecidedRun
from spark_apps.common.policies import policy_of
from spark_apps.plan.schemas import RESULTS

Frames = Iterator[pd.DataFrame]


def write_plans(policies: DataFrame, run: DecidedRun, tasks: int) -> DataFrame:
    """Write the plan of every decision to scale and return ``RESULTS``, one row a policy, spread over ``tasks``."""
    return policies.repartition(tasks, "policy").mapInPandas(_writer(run), RESULTS)


def _writer(run: DecidedRun) -> Callable[[Frames], Frames]:
    def write(frames: Frames) -> Frames:
        for frame in frames:
            results = [json.dumps(plan_policy(run, policy_of(row))) for row in frame.itertuples()]
            yield pd.DataFrame({"result": pd.Series(results, dtype=str)})

    return write
