"""A run's end: what came of it in one sentence, whom to notify of what, and the removal of what is old."""

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from planner.errors import IncompleteError, StorageError
from planner.policies.fleet import (
    read_problems,
)
from planner.policies.notices import Notice, NoticeRules, Result, policies_known, record_results
from planner.storage.layout import TIDY
from planner.storage.run import Decided, Run, read_set_aside
from planner.storage.tidying import tidy_runs
from planner.text.words import counted

log = logging.getLogger(__name__)


def conclude_run(run: Run, decided: Sequence[Decided], without_page: Mapping[str, str]) -> str:
    """Return what came of the run as one sentence of counts.

    Raises ``IncompleteError`` that names every policy, or policy file, that was not served, each with its reason.
    """
    failures = failures_of(run, decided, without_page)
    counts = run_summary(decided)
    if failures:
        reasons = "; ".join(f"{name}: {reason.rstrip('.')}" for name, reason in sorted(failures.items()))
        raise IncompleteError(f"{counts} {len(failures)} failed: {reasons}.")
    return counts


def failures_of(run: Run, decided: Sequence[Decided], without_page: Mapping[str, str]) -> Mapping[str, str]:
    """Return why policies, or policy files, were not served whole: a sentence each, by name."""
    undecided = {line["policy"]: line["reason"] for line in decided if line["to"] is None}
    return {**without_page, **undecided, **read_problems(run.folder)}


def count_note(run: Run, decided: Sequence[Decided], without_page: Mapping[str, str]) -> str:
    """Return what came of the run in counts that add up, like ``12 policies: 3 plans, 8 holds, 1 failed``."""
    failures = failures_of(run, decided, without_page)
    served = [line for line in decided if line["policy"] not in failures]
    plans = sum(line["plan"] is not None for line in served)
    policies = counted(len(served) + len(failures), "policy", "policies")
    return f"{policies}: {counted(plans, 'plan')}, {counted(len(served) - plans, 'hold')}, {len(failures)} failed"


def notices_after(run: Run, decided: Sequence[Decided], rules: NoticeRules) -> Sequence[Notice]:
    """Return what people should know of the run's policies after all runs until now, and keep its results for the next.

    A policy that earlier runs knew and this one could not read is one without a decision.
    """
    problems = read_problems(run.folder)
    results = [
        Result(line["policy"], line["to"] is not None, line["hold"], problems.get(line["policy"], line["reason"]))
        for line in decided
    ]
    if problems:
        unread = sorted(policies_known(run.data).keys() - {result.policy for result in results})
        reason = f"its policy was not read. {'; '.join(problems.values())}"
        results += [Result(name, False, None, reason) for name in unread]
    return record_results(run.data, run.until, results, rules)


def ages_at_decision_s(run: Run) -> Mapping[str, float]:
    """Return how old the group's newest sample was when its decision was written, in seconds, by policy.

    By the run's own files: the snapshot has how old its offsets were at its time, and the decision's file when it was
    written. A replayed recording is as old as it is.
    """
    ages = {}
    for path in run.folder.path.glob("*/decision.yaml"):
        name = path.parent.name
        sampled_s = _sampled_at_s(run, name)
        if sampled_s is not None:
            ages[name] = path.stat().st_mtime - sampled_s
    return ages


def _sampled_at_s(run: Run, policy: str) -> float | None:
    """Return when the newest sample of a snapshot was taken, in seconds since 1970, ``None`` where there is none."""
    path = run.folder.snapshot(policy)
    if not path.exists():
        return None
    # A thousand of them are read when a run ends: two figures of each, which the stages before have checked.
    body = json.loads(path.read_bytes())["body"]
    age_s = next(section["age_s"] for section in body["parts"] if section["name"] == "offsets")
    return datetime.fromisoformat(body["at"]).timestamp() - float(age_s)


def tidy_data(run: Run, keep_days: int) -> Mapping[str, str]:
    """Remove what runs, migrations, backtests and forecasts of loads left, more than ``keep_days`` older than this run.

    Returns what stays in nobody's way and could not be tidied, with the reason, the history's of this run too, and the
    files that this run has set aside.
    """
    untidied = dict(read_set_aside(run.folder))
    if sentence := _untidied_history(run):
        untidied["the history is not tidied"] = sentence
    try:
        removed = tidy_runs(run.data, run.until - timedelta(days=keep_days))
    except StorageError as error:
        return untidied | {"old runs stay": str(error)}
    if removed:
        old = counted(removed, "run, migration or backtest", "runs, migrations and backtests")
        log.info("%s more than %d days old removed", old, keep_days)
    return untidied


def _untidied_history(run: Run) -> str | None:
    """Return why the Spark app could not tidy the history, ``None`` where it did or has not run."""
    if not run.folder.stages.exists():
        return None
    reports = json.loads(run.folder.stages.read_text(encoding="utf-8"))
    return next((str(report["failed"]) for report in reports if report["stage"] == TIDY and "failed" in report), None)


def run_summary(decided: Sequence[Decided]) -> str:
    """Return what came of all policies as one sentence of counts."""
    plans = sum(line["plan"] is not None for line in decided)
    undecided = sum(line["to"] is None for line in decided)
    holds = len(decided) - plans - undecided
    policies = counted(len(decided), "policy", "policies")
    return f"{policies}: {plans} to scale, {holds} to hold, {undecided} without a decision."
