"""A group that may have no pod at all: to zero after a quiet time, from zero when messages wait.

The rule is KEDA's (2.17): one pod as soon as anything waits, none once nothing has for a cool-down of 300 s by default.
What is unknown counts as waiting: no group goes to zero on a lag that nobody could read.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from planner.decision.decision import Decision, HoldCause, Rejection
from planner.decision.objective import Objective
from planner.model.snapshot import POP, SHARE, GroupSnapshot, SeriesPoint
from planner.simulation.group_model import group_model
from planner.text.words import counted, duration

HoldReason = tuple[HoldCause, str]


def starts_from_zero(snapshot: GroupSnapshot, objective: Objective) -> bool:
    """Return whether the target is known to ask for no pod, under a policy that lets it."""
    deployment = snapshot.deployment
    is_empty = deployment is not None and deployment.replicas == 0 and not deployment.pods
    return objective.idle_s is not None and is_empty and not snapshot.clients


def reasons_to_stay_at_zero(snapshot: GroupSnapshot) -> Iterator[HoldReason]:
    """Yield why no pod is started: nothing waits, whether something does is unknown, or what it would do is."""
    if not snapshot.data_queues:
        yield HoldCause.INCOMPLETE_DATA, "no queue of the group is known: name its topics in spec.source.topics"
    if snapshot.strategy is None:
        yield (
            HoldCause.UNKNOWN_STRATEGY,
            "no member runs that would report the allocation strategy: state spec.strategy in the policy",
        )
    elif (why := _why_never_started(snapshot)) is not None:
        yield HoldCause.UNSUPPORTED_STRATEGY, f"{why}; start the first pod by hand"
    if snapshot.unknown_lag and not snapshot.lag:
        unknown = counted(len(snapshot.unknown_lag), "queue")
        yield HoldCause.UNKNOWN_LAG, f"the lag of {unknown} is unknown, so that nobody knows whether messages wait"
    if not snapshot.lag:
        yield HoldCause.RIGHT_ALREADY, "no pod runs and no message waits"


def _why_never_started(snapshot: GroupSnapshot) -> str | None:
    """Return why no plan starts the first pod under the group's strategy, ``None`` where one can."""
    if snapshot.strategy == "CONFIG":
        return "CONFIG lists queues by client ids, and no id of a pod that is to start is known: it could own nothing"
    if snapshot.strategy == POP:
        return "no strategy gives queues to gRPC clients, and the start of their first pod is not planned"
    if snapshot.strategy == SHARE:
        return "no member owns a partition of a share group, and the start of its first pod is not planned"
    return group_model(snapshot).unsupported_strategy()


def start_first(snapshot: GroupSnapshot, objective: Objective, at: datetime) -> Decision:
    """Return the decision to start one pod, or as many as the policy asks for at least when any runs.

    What one can do shows once one works: the next decision goes by that.
    """
    target = max(objective.lowest, 1)
    waiting = f"{counted(snapshot.lag, 'message')} {'waits' if snapshot.lag == 1 else 'wait'}"
    return Decision(
        group=snapshot.group,
        decided_at=at,
        strategy=snapshot.strategy,
        current=0,
        target=target,
        reason=f"Scale from 0 to {counted(target, 'pod')}: {waiting}, and no pod runs; "
        "how many are right shows once one works.",
        rejected=(),
        members_per_pod=snapshot.members_per_pod or 1,
    )


def why_not_to_zero(snapshot: GroupSnapshot, objective: Objective, at: datetime) -> str | None:
    """Return why the group keeps a pod: messages, a past that was not seen, no way back; ``None``: it may stop all."""
    idle_s = objective.idle_s or 0.0
    if (never := _why_never_started(snapshot)) is not None:
        return f"no plan would start a pod again: {never}"
    if snapshot.unknown_lag:
        return f"the lag of {counted(len(snapshot.unknown_lag), 'queue')} is unknown"
    if snapshot.lag:
        return f"{counted(snapshot.lag, 'message')} not yet consumed"
    since = at - timedelta(seconds=idle_s)
    points = [point for point in snapshot.recent if point.at > since]
    busy = next((point for point in reversed(points) if not _is_idle(point)), None)
    if busy is not None:
        what = "samples are missing" if busy.is_gap or busy.arrival_rate is None else "messages came"
        ago_s = (at - busy.at).total_seconds()
        return f"{what} {duration(ago_s)} ago, and {duration(idle_s)} must be without a message"
    began = min((point.at - timedelta(seconds=point.seconds) for point in points), default=at)
    if began > since:
        watched_s = (at - began).total_seconds()
        return f"only the last {duration(watched_s)} were watched, and {duration(idle_s)} must be without a message"
    return None


def stop_all(snapshot: GroupSnapshot, objective: Objective, at: datetime) -> Decision:
    """Return the decision to stop every pod."""
    return Decision(
        group=snapshot.group,
        decided_at=at,
        strategy=snapshot.strategy,
        current=snapshot.count,
        target=0,
        reason=f"Scale from {counted(snapshot.count, 'pod')} to 0: no message has come for "
        f"{duration(objective.idle_s or 0)} and none waits; the next one waits until a pod has started.",
        rejected=(),
        members_per_pod=snapshot.members_per_pod or 1,
    )


def rejected_zero(why: str) -> Rejection:
    """Return zero as a count that was not chosen."""
    return Rejection(0, (why,))


def _is_idle(point: SeriesPoint) -> bool:
    return not point.is_gap and point.arrival_rate == 0 and point.lag == 0
