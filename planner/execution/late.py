"""What a plan's requests left behind that reached the API server once the plan was over: taken back by their executor.

An executor that is suspended between its check of the lease and its request wakes when others may have ended the plan.
A request with a ``resourceVersion`` or an offset write to a group in use is refused then. Three requests the server
takes: the claim of a Deployment that nobody has touched since, deletion costs, and the creation of a Deployment.
"""

from planner.execution.backward import clear_marks, drop_claim
from planner.execution.effects import Delete
from planner.execution.moves import Perform, Reconcile
from planner.execution.observation import DeploymentObservation
from planner.execution.phases import Phase
from planner.execution.plan_targets import created_deployments


def take_back_late(reconcile: Reconcile) -> Perform | None:
    """Return the effect that takes back one thing that a plan which is over has left, ``None`` once nothing is.

    A stuck plan keeps its claims and all else, as a person must look.
    """
    if reconcile.status.phase is Phase.STUCK:
        return None
    return _delete_created(reconcile) or clear_marks(reconcile) or drop_claim(reconcile)


def _delete_created(reconcile: Reconcile) -> Perform | None:
    """Return the effect that deletes a Deployment which the plan created late: with its claim, never with pods."""
    if reconcile.status.ended != "old":
        return None
    for name in created_deployments(reconcile.plan):
        deployment = reconcile.claimed.get(name)
        if deployment is not None and (delete := _delete_empty(deployment)) is not None:
            return Perform(delete)
    return None


def _delete_empty(deployment: DeploymentObservation) -> Delete | None:
    facts = deployment.facts
    if facts is None or facts.replicas or facts.pods is None or facts.pods:
        return None
    return Delete(deployment.name, facts.uid, facts.resource_version)
