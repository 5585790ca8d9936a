"""One scheduled run on one machine, without Airflow and Spark: the same stages on the same files.

Groups are observed side by side by ``observe_each``. What follows is done for each policy by itself, in a few
processes at a time: one group is in memory for each of them, however many policies there are, and a process that the
system kills costs its own policy alone.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from planner import pipeline
from planner.decision.standing import StandingDecision, standing_decision
from planner.documents.plan import read_document
from planner.documents.policy import ConsumerScalingPolicy, read_policy
from planner.errors import BadInputError, PlannerError
from planner.isolation import attempt
from planner.policies.fleet import read_problems
from planner.runs.pages import write_policy_page
from planner.runs.past_runs import former_samples, former_snapshot, gap_period_s
from planner.runs.plan import plan_policy
from planner.runs.policy_stages import give_up, snapshot_of_samples, write_decision, write_snapshot
from planner.runs.processes import KilledError, in_processes
from planner.storage.files import write_atomically
from planner.storage.layout import RunFolder
from planner.storage.run import Decided, Run


@dataclass(frozen=True, slots=True)
class Served:
    """What came of one policy. ``page`` is its page's file, ``without_page`` why there is none though one was due.

    ``data_age_s`` is how old the group's newest sample was when its decision was written, ``None`` without a decision.
    ``made_in`` is the run that decided where the decision of a former one stands; ``standing`` is a decision that the
    next runs may find to stand.
    """

    decided: Decided
    page: str | None = None
    without_page: str | None = None
    data_age_s: float | None = None
    made_in: RunFolder | None = None
    standing: StandingDecision | None = None


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a run leaves: pages or not, and copies of its plans in the folder ``plans``."""

    with_pages: bool = True
    plans: Path | None = None


def serve_all(run: Run, wishes: Wishes, jobs: int, left_out: Collection[str] = ()) -> Iterator[Served]:
    """Yield what came of each policy that the run keeps, by name; at most ``jobs`` are worked on at a time.

    Those ``left_out`` have their decision already. A policy whose process is killed is tried once more, alone.
    """
    parts = [names for names in _together(run) if not set(names) <= set(left_out)]
    for names, result in zip(parts, in_processes(partial(serve, run, wishes=wishes), parts, jobs), strict=True):
        yield from _killed(run, names, result) if isinstance(result, KilledError) else result


def _together(run: Run) -> Sequence[tuple[str, ...]]:
    """Return the names of all policies, those of one target together: one decision is for all of them."""
    parts: dict[str, tuple[str, ...]] = {}
    for path in sorted(run.policies.glob("*.yaml")):
        if path.stem in parts:
            continue
        # Most share nothing: those need not be read here.
        is_shared = b"sharedWith" in path.read_bytes()
        others = read_policy(path).shared_with if is_shared else ()
        present = [name for name in others if name not in parts and (run.policies / f"{name}.yaml").exists()]
        parts |= dict.fromkeys((path.stem, *present), ())
        parts[path.stem] = (path.stem, *present)
    return [names for names in parts.values() if names]


def _killed(run: Run, names: Sequence[str], reason: KilledError) -> list[Served]:
    policies = [read_policy(run.policies / f"{name}.yaml") for name in names]
    for name in names:
        give_up(run.folder, name, reason)
    return [Served(plan_policy(run, policy)) for policy in policies]


def serve(run: Run, names: Sequence[str], wishes: Wishes) -> list[Served]:
    """Take the policies' snapshots, simulate, decide, and write plans and pages; a failure ends as a sentence in it.

    ``names`` are the policies of one target: each is decided on before the plan of one for all of them is made.
    """
    policies = [read_policy(run.policies / f"{name}.yaml") for name in names]
    fresh = [_try_to_decide(run, policy) for policy in policies]
    return [_plan(run, policy, decision, wishes) for policy, decision in zip(policies, fresh, strict=True)]


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A decision just made: how old the group's newest sample then was, in seconds, and as one that may stand."""

    age_s: float
    standing: StandingDecision | None


def _try_to_decide(run: Run, policy: ConsumerScalingPolicy) -> _Fresh | PlannerError:
    name = policy.metadata.name
    fresh = attempt(name, "decide", _decide, run, policy)
    if isinstance(fresh, PlannerError):
        give_up(run.folder, name, fresh)
    return fresh


def _plan(run: Run, policy: ConsumerScalingPolicy, fresh: _Fresh | PlannerError, wishes: Wishes) -> Served:
    name = policy.metadata.name
    planned = plan_policy(run, policy)
    decided = attempt(name, "plan", _with_copy, planned, wishes.plans)
    if isinstance(decided, PlannerError):
        return Served({**planned, "to": None, "reason": str(decided)})
    served = Served(decided)
    if isinstance(fresh, _Fresh):
        served = replace(served, data_age_s=fresh.age_s, standing=fresh.standing)
    if not wishes.with_pages or decided["to"] is None:
        return served
    page = write_policy_page(run, policy)
    if isinstance(page, PlannerError):
        return replace(served, without_page=str(page))
    return replace(served, page=str(page))


def _decide(run: Run, policy: ConsumerScalingPolicy) -> _Fresh:
    """Write the policy's snapshot and decision; return how old its newest sample then is."""
    name = policy.metadata.name
    problem = read_problems(run.folder).get(name)
    if problem is not None:
        raise BadInputError(problem)
    samples = former_samples(run.data, policy, run.until)
    period_s = gap_period_s(run.data, policy, run.until, run.sample_every_s)
    former = former_snapshot(run.data, policy, run.until)
    snapshot = snapshot_of_samples(policy, samples, period_s, run.until, former)
    write_snapshot(run.folder, name, snapshot)
    outcomes = pipeline.simulate(snapshot, policy)
    record = write_decision(run.folder, policy, snapshot, outcomes)
    age_s = (datetime.now(UTC) - samples[-1].at).total_seconds()
    if policy.shared_with:
        return _Fresh(age_s, None)
    return _Fresh(age_s, standing_decision(snapshot, outcomes, policy.objective, record.decision, samples[-1]))


def _with_copy(decided: Decided, plans: Path | None) -> Decided:
    """Return the decision with its plan's copy below ``plans``, under the plan's own name: no other run has it."""
    if plans is None or decided["plan"] is None:
        return decided
    made = Path(decided["plan"])
    name = read_document(made)["metadata"]["name"]
    return {**decided, "plan": str(write_atomically(plans / f"{name}.yaml", made.read_bytes()))}
