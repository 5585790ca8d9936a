"""``run_turn``: one turn of one plan over the ports. Nothing is kept between two turns: any of them may be the last.

Take the lease, read the plan, look, decide one move, perform or write it. A conflict means that somebody was faster:
the next turn looks again. Whatever does not answer is tried again with the same effect, which then is in or is not.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from planner.errors import OutOfReachError
from planner.execution.denied import decide_denied
from planner.execution.engine import decide
from planner.execution.lease import holder_name, is_free, lease_name, may_act, needs_renewal
from planner.execution.look import Look
from planner.execution.moves import Done, Perform, Wait, Write
from planner.execution.phases import Phase
from planner.execution.ports import ConflictError, DeniedError, Events, Lease, Leases, PlanStore, StoredPlan, World
from planner.execution.progress import RolloutStatus

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ports:
    """All that an executor works on.

    ``clock`` tells the time in UTC: the API server's, where executors run on several hosts.
    """

    plans: PlanStore
    world: World
    leases: Leases
    events: Events
    clock: Callable[[], datetime]


class Outcome(StrEnum):
    """How a turn ended: only ``MOVED`` asks for the next one at once."""

    MOVED = "moved"
    WAITING = "waiting"
    LEASED = "leased to another"
    AGAIN = "to be tried again"
    DONE = "done"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Turned:
    """One turn: how it ended and why, in a sentence; ``until`` is when a wait ends at the latest."""

    outcome: Outcome
    why: str
    until: datetime | None = None


def run_turn(ports: Ports, name: str, executor: str) -> Turned:
    """Return how one turn of the plan ``name`` ended. Raises nothing that a later turn can mend.

    ``executor`` must be this process's alone (host and process id, pod name): its lease is known by it.
    """
    try:
        stored = ports.plans.read(name)
        if stored is None:
            return Turned(Outcome.GONE, f"there is no plan {name}")
        if stored.status.phase.is_final:
            return _over(ports, stored, executor)
        return _led(ports, stored, executor)
    except ConflictError as error:
        return Turned(Outcome.AGAIN, f"somebody was faster: {error}")
    except OutOfReachError as error:
        return Turned(Outcome.AGAIN, str(error))


def _over(ports: Ports, stored: StoredPlan, executor: str) -> Turned:
    """Give the group free and let a deleted plan go: nothing else is left to do."""
    _release(ports, stored, executor)
    if stored.requests.is_deleted:
        ports.plans.let_go(stored)
    return Turned(Outcome.DONE, stored.status.message)


def _led(ports: Ports, stored: StoredPlan, executor: str) -> Turned:
    if stored.status.phase is Phase.PENDING:
        # Nothing is done but to note an approval: that needs no lease, and must not wait for another plan's end.
        noting = decide(stored, Look(ports.clock()), ports.clock())
        assert not isinstance(noting, Perform)
        return _make(ports, stored, noting, executor)
    holder = holder_name(executor, stored.key)
    lease = _take(ports, lease_name(stored.plan.group), holder)
    if lease is None:
        return Turned(Outcome.LEASED, f"another executor drives a plan of group {stored.plan.group.group}")
    # Read again: what was read before the lease was ours may be older than what its last holder did.
    fresh = ports.plans.read(stored.name)
    if fresh is None or fresh.uid != stored.uid:
        return Turned(Outcome.GONE, f"there is no plan {stored.name} any more")
    if not (fresh.is_held or fresh.requests.is_deleted):
        # At every turn, not once: whoever gave the plan up before it began has let it go.
        ports.plans.hold_on(fresh.name)
        return Turned(Outcome.MOVED, "a deletion waits until the plan is at an end")
    now = ports.clock()
    look = ports.world.look(fresh, now)
    move = decide(fresh, look, now)
    if isinstance(move, Perform):
        return _perform(ports, fresh, look, move, executor, lease)
    return _make(ports, fresh, move, executor)


def _take(ports: Ports, name: str, holder: str) -> Lease | None:
    lease, now = ports.leases.read(name), ports.clock()
    if not is_free(lease, holder, now):
        return None
    if lease is None or needs_renewal(lease, holder, now):
        return ports.leases.write(name, lease, holder, now)
    return lease


def _perform(ports: Ports, stored: StoredPlan, look: Look, wanted: Perform, executor: str, lease: Lease) -> Turned:
    if not may_act(lease, holder_name(executor, stored.key), ports.clock()):
        return Turned(Outcome.AGAIN, "the lease has run too short while the world was looked at")
    try:
        ports.world.perform(wanted.effect)
    except (ConflictError, DeniedError) as error:
        move = decide_denied(stored, look, wanted, error, ports.clock())
        if move is None:
            raise
        if isinstance(move, Perform):
            return _perform(ports, stored, look, move, executor, lease)
        return _make(ports, stored, move, executor)
    return Turned(Outcome.MOVED, f"performed {type(wanted.effect).__name__}")


def _make(ports: Ports, stored: StoredPlan, move: Write | Wait | Done, executor: str) -> Turned:
    match move:
        case Write(status, reason):
            _write(ports, stored, replace(status, executor=executor), reason)
            return Turned(Outcome.MOVED, status.held or status.message)
        case Wait(why, until):
            if stored.status.phase is Phase.APPROVED:
                _release(ports, stored, executor)  # a plan that only waits stands in no other plan's way
            return Turned(Outcome.WAITING, why, until)
        case Done(phase):
            return Turned(Outcome.DONE, phase)


def _write(ports: Ports, stored: StoredPlan, status: RolloutStatus, reason: str | None) -> None:
    noted = replace(status, last_look_at=ports.clock(), observed_generation=stored.generation)
    ports.plans.write_status(stored, noted)
    log.info("rollout moved", extra={"plan": stored.name, "phase": noted.phase, "step": noted.step})
    if reason is not None:
        ports.events.tell(stored, reason, noted.held or noted.message)


def _release(ports: Ports, stored: StoredPlan, executor: str) -> None:
    name = lease_name(stored.plan.group)
    lease = ports.leases.read(name)
    if lease is not None and lease.holder == holder_name(executor, stored.key):
        ports.leases.write(name, lease, None, ports.clock())
