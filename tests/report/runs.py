"""A run for the page's tests: load rises, a plan starts two consumers, load falls, a plan stops two."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.execution.progress import Approval, RolloutStatus, StepProgress
from planner.report.run import Note, Observation, Run
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import AwaitReady, AwaitSettled, MovedQueues, StartConsumers, Step, StopConsumers
from planner.verification.judge import judge
from planner.verification.observed_change import Between, ObservedChange
from tests.pod_groups import owned, plan_for

BEGIN = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
UP, DOWN, END = 60, 150, 220
FEW, MANY = ("pod-a", "pod-b"), ("pod-a", "pod-b", "pod-c", "pod-d")
MOVES = MovedQueues(4, 6)


def at(seconds: float) -> datetime:
    """Return a time of the run."""
    return BEGIN + timedelta(seconds=seconds)


def run() -> Run:
    """Return the whole run, a look every two seconds."""
    up = (StartConsumers(2, 4, 60, MOVES, undo="set 2"), AwaitReady(4, 60), AwaitSettled(4, "AVG", 60))
    down = (StopConsumers(4, 2, MANY[2:], 60, MOVES, undo="set 4"), AwaitReady(2, 60), AwaitSettled(2, "AVG", 60))
    return Run(
        sights=tuple(_observation(seconds) for seconds in range(0, END, 2)),
        plans=(_plan("up", FEW, up, UP, moved=5), _plan("down", MANY, down, DOWN, moved=9)),
        notes=(Note(at(20), "load rises"), Note(at(120), "load falls")),
        real=("a broker",),
        stand_ins=("no containers",),
    )


def _observation(seconds: int) -> Observation:
    members = MANY if UP + 6 <= seconds < DOWN + 4 else FEW
    owners = {queue: (member,) for member, queues in owned(members).items() for queue in queues}
    if seconds in (UP + 6, DOWN + 4):
        owners = {queue: () if queue.queue_id > 5 else names for queue, names in owners.items()}
    lag = 40 + max(0, 40 * (min(seconds, UP) - 20) - 60 * max(0, seconds - UP))
    replicas = 4 if UP <= seconds < DOWN else 2
    return Observation(at(seconds), 200 * seconds + lag, 200 * seconds, lag, members, owners, replicas, len(members))


def _plan(name: str, members: Sequence[str], steps: Sequence[Step], begins: float, moved: int) -> StoredPlan:
    plan = _target(plan_for("app", members, steps), 4 if name == "up" else 2)
    plan = replace(plan, forecast=replace(plan.forecast, moved_queues=MOVES))
    taken = tuple(
        StepProgress(number, step.kind, at(begins + 5 * number), at(begins + 5 * number + 5), message=step.done_when)
        for number, step in enumerate(steps)
    )
    status = RolloutStatus(
        phase=Phase.SUCCEEDED,
        message="all steps are done",
        ended="new",
        steps=taken,
        approval=Approval("sha256:approved", "maria", at(begins - 3)),
        verdict=judge(plan.forecast, ObservedChange(moved_queues=Between.exactly(moved)), at(begins + 20)),
    )
    return StoredPlan(name, f"uid-{name}", plan, "sha256:approved", "1", status)


def _target(plan: RolloutPlan, replicas: int) -> RolloutPlan:
    return replace(plan, target_replicas=replicas, made_at=BEGIN, valid_until=at(3600))
