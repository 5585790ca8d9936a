"""From outcomes to decisions: the planner's own function, one policy at a time."""

import json
from collections.abc import Callable

import pandas as pd
from pyspark.sql import DataFrame

from planner.documents.data import OUTCOMES, SNAPSHOT
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import PlannerError
from planner.isolation import attempt
from planner.runs.policy_stages import give_up, write_decision
from planner.simulation.outcome import CandidateOutcome
from planner.storage.files import write_atomically
from planner.storage.layout import RunFolder
from spark_apps.common.policies import policy_of
from spark_apps.decide.schemas import DECISIONS


def write_decisions(policies: DataFrame, outcomes: DataFrame, run: RunFolder) -> DataFrame:
    """Write each policy's decision with the outcomes it rests on and return ``DECISIONS``, one row a policy.

    A policy without outcomes gets its decision too: hold, with the reason.
    """
    by_policy = policies.groupBy("policy").cogroup(outcomes.groupBy("policy"))
    return by_policy.applyInPandas(_writer(run), DECISIONS)


def _writer(run: RunFolder) -> Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]:
    def write(policies: pd.DataFrame, outcomes: pd.DataFrame) -> pd.DataFrame:
        rows = [write_policy(policy_of(row), outcomes) for row in policies.itertuples()]
        return pd.DataFrame(rows, columns=DECISIONS.fieldNames())

    def write_policy(policy: ConsumerScalingPolicy, outcomes: pd.DataFrame) -> tuple[str, str]:
        name = policy.metadata.name
        result = attempt(name, "decide", _write_decision, policy, outcomes, run)
        return name, give_up(run, name, result) if isinstance(result, PlannerError) else result

    return write


def _write_decision(policy: ConsumerScalingPolicy, rows: pd.DataFrame, run: RunFolder) -> str:
    name = policy.metadata.name
    if not run.snapshot(name).exists():
        return _without_snapshot(policy, run)
    outcomes = outcomes_of(rows, f"outcomes of policy {name} in {run.outcomes}")
    return write_decision(run, policy, SNAPSHOT.read(run.snapshot(name)), outcomes).decision.reason


def _without_snapshot(policy: ConsumerScalingPolicy, run: RunFolder) -> str:
    """Return why there is no decision, and see to it that the run's files say so too."""
    name = policy.metadata.name
    files = run.policy(name)
    files.forget_results()
    if not files.no_decision.exists():
        sentence = f"No decision for policy {name}: it came after this run's snapshots, the next run has it."
        write_atomically(files.no_decision, sentence + "\n")
    return files.no_decision.read_text(encoding="utf-8").strip()


def outcomes_of(rows: pd.DataFrame, where: str) -> tuple[CandidateOutcome, ...]:
    """Return the rows' outcomes in the order in which ``planner.pipeline.simulate`` gives them."""
    texts = rows.sort_values("position")["outcome"]
    return OUTCOMES.validate([json.loads(text) for text in texts], where)
