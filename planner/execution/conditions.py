"""What a plan's status says in the cluster's own terms: conditions, and how many steps are done.

::

    Approved     an approval of this plan was noted
    Held         nothing is done now; the message says why
    Complete     all steps are done: the new state is there
    Reconciling  the plan is not at its end, so wait
    Stalled      the plan is at its end without the new state, so do not wait

``kubectl wait`` asks for one of them. kstatus, by which Flux and kpt judge any object, takes a plan that is reconciling
as in progress, one that is stalled as failed, and every other as current.
"""

from dataclasses import replace
from datetime import datetime
from typing import Final

from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.execution.progress import Condition, RolloutStatus

SCALE: Final = "scale"
"""The kind of a plan that is no migration."""


def with_conditions(stored: StoredPlan, status: RolloutStatus, at: datetime) -> RolloutStatus:
    """Return the status of a stored plan with its kind, progress and conditions as they are at time ``at``."""
    return replace(
        status,
        observed_generation=stored.generation,
        kind=stored.plan.migration or SCALE,
        progress=f"{status.step}/{len(stored.plan.steps)}",
        conditions=_conditions(stored, status, at),
    )


def _conditions(stored: StoredPlan, status: RolloutStatus, at: datetime) -> tuple[Condition, ...]:
    phase, message = status.phase, status.message
    approval = status.approval
    approver = (
        f"approved by {approval.by or 'somebody whom the API server did not name'}" if approval else "not approved"
    )
    is_waiting = status.held is not None
    facts = (
        ("Approved", approval is not None, "Approved" if approval else "NotApproved", approver),
        ("Held", is_waiting, "Held" if is_waiting else "NotHeld", status.held or "nothing stands against it"),
        ("Complete", phase is Phase.SUCCEEDED, phase, message),
        ("Reconciling", not phase.is_final, phase, status.held or message),
        ("Stalled", phase.is_final and phase is not Phase.SUCCEEDED, phase, message),
    )
    before = {condition.type: condition for condition in status.conditions}
    return tuple(
        _condition(before.get(name), name, "True" if is_true else "False", str(reason), sentence, stored, at)
        for name, is_true, reason, sentence in facts
    )


def _condition(
    before: Condition | None, name: str, status: str, reason: str, message: str, stored: StoredPlan, at: datetime
) -> Condition:
    """Return a condition; its time changes with its status alone."""
    since = before.last_transition_time if before is not None and before.status == status else at
    return Condition(name, status, reason, message, since, stored.generation)
