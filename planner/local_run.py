"""One scheduled run on one machine, without Airflow and Spark: the same stages on the same files.

Groups are observed side by side by ``stages.observe_each``. What follows is done for each policy by itself, in a few
processes at a time: one group is in memory for each of them, however many policies there are, and a process that the
system kills costs its own policy alone.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

from planner import pipeline, stages
from planner.documents.plan import read_document
from planner.documents.policy import ConsumerScalingPolicy, read_policy
from planner.errors import BadInputError, DefectError, PlannerError
from planner.fleet import read_problems
from planner.isolation import attempt
from planner.past_runs import former_samples, gap_period_s
from planner.policy_stages import give_up, snapshot_of_samples, write_decision, write_snapshot
from planner.stages import Decided, Run
from planner.storage.files import write_atomically


@dataclass(frozen=True, slots=True)
class Served:
    """What came of one policy. ``page`` is its page's file, ``without_page`` why there is none though one was due.

    ``data_age_s`` is how old the group's newest sample was when its decision was written, ``None`` without a decision.
    """

    decided: Decided
    page: str | None = None
    without_page: str | None = None
    data_age_s: float | None = None


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a run leaves: pages or not, and copies of its plans in the folder ``plans``."""

    with_pages: bool = True
    plans: Path | None = None


def serve_all(run: Run, wishes: Wishes, jobs: int) -> Iterator[Served]:
    """Yield what came of each policy that the run keeps, by name; at most ``jobs`` are worked on at a time.

    A policy whose process is killed takes those beside it along; each of them is tried once more, alone.
    """
    names = sorted(path.stem for path in run.policies.glob("*.yaml"))
    with _processes(jobs) as pool:
        futures = [pool.submit(serve, run, name, wishes) for name in names]
        for name, future in zip(names, futures, strict=True):
            yield _result(future) or _serve_alone(run, name, wishes)


def _processes(jobs: int) -> ProcessPoolExecutor:
    # Not forked: the Kafka client's threads would be missing in the child, and its locks would stay taken.
    return ProcessPoolExecutor(max_workers=jobs, mp_context=get_context("spawn"))


def _result(future: "Future[Served]") -> Served | None:
    try:
        return future.result()
    except BrokenProcessPool:
        return None


def _serve_alone(run: Run, name: str, wishes: Wishes) -> Served:
    with _processes(1) as pool:
        served = _result(pool.submit(serve, run, name, wishes))
    if served is not None:
        return served
    policy = read_policy(run.policies / f"{name}.yaml")
    killed = DefectError("the process that worked on it was killed: give the run more memory, or fewer --jobs")
    give_up(run.folder, name, killed)
    return Served(stages.plan_policy(run, policy))


def serve(run: Run, name: str, wishes: Wishes) -> Served:
    """Take the policy's snapshot, simulate, decide, and write plan and page; a failure ends as a sentence in it."""
    policy = read_policy(run.policies / f"{name}.yaml")
    age_s = attempt(name, "decide", _decide, run, policy)
    if isinstance(age_s, PlannerError):
        give_up(run.folder, name, age_s)
    planned = stages.plan_policy(run, policy)
    decided = attempt(name, "plan", _with_copy, planned, wishes.plans)
    if isinstance(decided, PlannerError):
        return Served({**planned, "to": None, "reason": str(decided)})
    served = Served(decided, data_age_s=None if isinstance(age_s, PlannerError) else age_s)
    if not wishes.with_pages or decided["to"] is None:
        return served
    page = stages.report_policy(run, policy)
    if isinstance(page, PlannerError):
        return replace(served, without_page=str(page))
    return replace(served, page=str(page))


def _decide(run: Run, policy: ConsumerScalingPolicy) -> float:
    """Write the policy's snapshot and decision; return how old its newest sample then is, in seconds."""
    name = policy.metadata.name
    problem = read_problems(run.folder).get(name)
    if problem is not None:
        raise BadInputError(problem)
    samples = former_samples(run.data, policy, run.until)
    period_s = gap_period_s(run.data, policy, run.until, run.sample_every_s)
    snapshot = snapshot_of_samples(policy, samples, period_s, run.until)
    write_snapshot(run.folder, name, snapshot)
    write_decision(run.folder, policy, snapshot, pipeline.simulate(snapshot, policy))
    return (datetime.now(UTC) - samples[-1].at).total_seconds()


def _with_copy(decided: Decided, plans: Path | None) -> Decided:
    """Return the decision with its plan's copy below ``plans``, under the plan's own name: no other run has it."""
    if plans is None or decided["plan"] is None:
        return decided
    made = Path(decided["plan"])
    name = read_document(made)["metadata"]["name"]
    return {**decided, "plan": str(write_atomically(plans / f"{name}.yaml", made.read_bytes()))}
