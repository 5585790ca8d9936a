"""``run_reconcile``: one reconcile of one plan over the ports. Nothing is kept in between: any of them may be the last.

Take the lease, read the plan, observe, decide one move, perform or write it. A conflict means that another client was
faster: the next reconcile observes again. A request without answer is tried again with the same effect, which then is
in or is not.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from planner.errors import OutOfReachError
from planner.execution.denied import decide_denied
from planner.execution.engine import decide
from planner.execution.late import take_back_late
from planner.execution.lease import holder_name, is_free, lease_name, may_act, needs_renewal
from planner.execution.moves import Done, Perform, Reconcile, Wait, Write
from planner.execution.observation import Observation
from planner.execution.phases import Phase
from planner.execution.ports import Cluster, ConflictError, DeniedError, Events, Lease, Leases, PlanStore, StoredPlan
from planner.execution.progress import RolloutStatus

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ports:
    """All that an executor works on.

    ``clock`` returns the time in UTC: the API server's, where executors run on several hosts.
    """

    plans: PlanStore
    cluster: Cluster
    leases: Leases
    events: Events
    clock: Callable[[], datetime]


class Outcome(StrEnum):
    """How a reconcile ended: only ``MOVED`` asks for the next one at once."""

    MOVED = "moved"
    WAITING = "waiting"
    LEASED = "leased to another"
    RETRY = "to be tried again"
    DONE = "done"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """One reconcile: how it ended and why, in a sentence; ``until`` is when a wait ends at the latest."""

    outcome: Outcome
    why: str
    until: datetime | None = None


def run_reconcile(ports: Ports, name: str, executor: str) -> ReconcileResult:
    """Return how one reconcile of the plan ``name`` ended. Raises nothing that a later one can mend.

    ``executor`` must be this process's alone (host and process id, pod name): its lease is known by it.
    """
    try:
        stored = ports.plans.read(name)
        if stored is None:
            return ReconcileResult(Outcome.GONE, f"there is no plan {name}")
        if stored.status.phase.is_final:
            return _finish(ports, stored, executor)
        return _drive(ports, stored, executor)
    except ConflictError as error:
        return ReconcileResult(Outcome.RETRY, f"somebody was faster: {error}")
    except OutOfReachError as error:
        return ReconcileResult(Outcome.RETRY, str(error))


def _finish(ports: Ports, stored: StoredPlan, executor: str) -> ReconcileResult:
    """Give the group free and let a deleted plan go; take back what came late where another executor ended it."""
    if not _release(ports, stored, executor) and (late := _take_back_late(ports, stored)) is not None:
        return late
    if stored.requests.is_deleted:
        ports.plans.remove_finalizer(stored)
    return ReconcileResult(Outcome.DONE, stored.status.message)


def _take_back_late(ports: Ports, stored: StoredPlan) -> ReconcileResult | None:
    """Take one thing back that a request of ours left after the plan's end; ``None`` once nothing is, or can be."""
    now = ports.clock()
    late = take_back_late(Reconcile(stored, ports.cluster.observe(stored, now), now))
    if late is None:
        return None
    try:
        ports.cluster.perform(late.effect)
    except DeniedError as error:
        log.warning("a late effect stays", extra={"plan": stored.name, "error": str(error)})
        return None
    return ReconcileResult(Outcome.MOVED, "took back an effect that came after the plan's end")


def _drive(ports: Ports, stored: StoredPlan, executor: str) -> ReconcileResult:
    if stored.status.phase is Phase.PENDING:
        # Nothing is done but to note an approval: that needs no lease, and must not wait for another plan's end.
        note = decide(stored, Observation(ports.clock()), ports.clock())
        assert not isinstance(note, Perform)
        return _make(ports, stored, note, executor)
    holder = holder_name(executor, stored.key)
    lease = _take(ports, lease_name(stored.plan.group), holder)
    if lease is None:
        return ReconcileResult(Outcome.LEASED, f"another executor drives a plan of group {stored.plan.group.group}")
    # Read again: what was read before the lease was ours may be older than what its last holder did.
    fresh = ports.plans.read(stored.name)
    if fresh is None or fresh.uid != stored.uid:
        return ReconcileResult(Outcome.GONE, f"there is no plan {stored.name} any more")
    if not (fresh.has_finalizer or fresh.requests.is_deleted):
        # At every reconcile, not once: a client that gave the plan up before it began has removed the finalizer.
        ports.plans.add_finalizer(fresh.name)
        return ReconcileResult(Outcome.MOVED, "a deletion waits until the plan is at an end")
    now = ports.clock()
    observation = ports.cluster.observe(fresh, now)
    move = decide(fresh, observation, now)
    if isinstance(move, Perform):
        return _perform(ports, fresh, observation, move, executor, lease)
    return _make(ports, fresh, move, executor)


def _take(ports: Ports, name: str, holder: str) -> Lease | None:
    lease, now = ports.leases.read(name), ports.clock()
    if not is_free(lease, holder, now):
        return None
    if lease is None or needs_renewal(lease, holder, now):
        return ports.leases.write(name, lease, holder, now)
    return lease


def _perform(
    ports: Ports, stored: StoredPlan, observation: Observation, requested: Perform, executor: str, lease: Lease
) -> ReconcileResult:
    if not may_act(lease, holder_name(executor, stored.key), ports.clock()):
        return ReconcileResult(Outcome.RETRY, "the lease has run too short while the world was looked at")
    try:
        ports.cluster.perform(requested.effect)
    except (ConflictError, DeniedError) as error:
        move = decide_denied(stored, observation, requested, error, ports.clock())
        if move is None:
            raise
        if isinstance(move, Perform):
            return _perform(ports, stored, observation, move, executor, lease)
        return _make(ports, stored, move, executor)
    return ReconcileResult(Outcome.MOVED, f"performed {type(requested.effect).__name__}")


def _make(ports: Ports, stored: StoredPlan, move: Write | Wait | Done, executor: str) -> ReconcileResult:
    match move:
        case Write(status, reason):
            _write(ports, stored, replace(status, executor=executor), reason)
            return ReconcileResult(Outcome.MOVED, status.held or status.message)
        case Wait(why, until):
            if stored.status.phase is Phase.APPROVED:
                _release(ports, stored, executor)  # a plan that only waits stands in no other plan's way
            return ReconcileResult(Outcome.WAITING, why, until)
        case Done(phase):
            return ReconcileResult(Outcome.DONE, phase)


def _write(ports: Ports, stored: StoredPlan, status: RolloutStatus, reason: str | None) -> None:
    noted = replace(status, last_look_at=ports.clock(), observed_generation=stored.generation)
    ports.plans.write_status(stored, noted)
    log.info("rollout moved", extra={"plan": stored.name, "phase": noted.phase, "step": noted.step})
    if reason is not None:
        ports.events.record(stored, reason, noted.held or noted.message)


def _release(ports: Ports, stored: StoredPlan, executor: str) -> bool:
    """Give the group's lease back and return whether it was ours."""
    name = lease_name(stored.plan.group)
    lease = ports.leases.read(name)
    is_ours = lease is not None and lease.holder == holder_name(executor, stored.key)
    if is_ours:
        ports.leases.write(name, lease, None, ports.clock())
    return is_ours
