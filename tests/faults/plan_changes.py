"""Changes of the plan, of its policy and of other plans, made on the API server, and of the plan's own times."""

from dataclasses import replace
from datetime import timedelta

from planner.execution.codes import Code
from tests.clusters.kubernetes.rest import MERGE
from tests.faults.drift_case import PLAN, POLICIES, POLICY_NAME, Case, Expected
from tests.faults.place import CLAIM

_APPROVE, _ABORT = "consumerplanner.dev/approve", "consumerplanner.dev/abort"


def policy_changed(case: Case) -> Expected:
    """Somebody changes the policy."""
    path = f"{POLICIES.format(case.where.namespace)}/{POLICY_NAME}"
    now = case.chance.randint(17, 40)
    case.where.cluster.rest.patch(path, {"spec": {"maxReplicas": now}}, MERGE)
    return Expected(Code.POLICY_CHANGED, f"policy {POLICY_NAME} was changed")


def policy_gone(case: Case) -> Expected:
    """Somebody deletes the policy."""
    case.where.cluster.rest.delete(f"{POLICIES.format(case.where.namespace)}/{POLICY_NAME}")
    return Expected(None, f"policy {POLICY_NAME} could not be read")


def plan_edited(case: Case) -> Expected:
    """Somebody makes an edited plan in the approved one's place: the server lets nobody change a plan."""
    where, path = case.where, f"{case.where.plans}/{PLAN}"
    edited = where.cluster.rest.get(path)
    edited["spec"]["reason"] = f"because {case.chance.random()}"
    edited["metadata"] = {"name": PLAN, "annotations": edited["metadata"]["annotations"]}
    where.cluster.rest.delete(path)
    where.cluster.rest.create(where.plans, edited)
    return Expected(None, "read and approve it again")


def approval_of_another(case: Case) -> Expected:
    """The approval names another digest."""
    digest = f"sha256:{case.chance.getrandbits(256):064x}"
    case.edit({"metadata": {"annotations": {_APPROVE: digest}}})
    return Expected(None, f"names digest {digest}")


def approval_gone(case: Case) -> Expected:
    """Somebody takes the approval back."""
    case.edit({"metadata": {"annotations": {_APPROVE: None}}})
    return Expected(None, "waits for approval")


def withdrawn(case: Case) -> Expected:
    """Somebody aborts the plan."""
    case.edit({"metadata": {"annotations": {_ABORT: "true"}}})
    return Expected(Code.WITHDRAWN, "withdrawn by a person")


def other_plan(case: Case) -> Expected:
    """Another plan of the group is under way."""
    case.rival("rival", case.plan.group.group, "other")
    return Expected(Code.OTHER_PLAN, "plan rival is Running on the same group")


def claimed(case: Case) -> Expected:
    """A plan of another group has claimed the Deployment."""
    case.foreign_claim = f"{case.rival('rival', 'other', 'other')}/0"
    case.where.patch({"metadata": {"annotations": {CLAIM: case.foreign_claim}}})
    return Expected(Code.CLAIMED, "plan rival (Running) has claimed")


def expired(case: Case) -> Expected:
    """Its time is over."""
    ago = timedelta(minutes=case.chance.randint(40, 10_000))
    made = case.plan.made_at - ago
    snapshot = replace(case.plan.snapshot, at=made)
    case.plan = replace(case.plan, snapshot=snapshot, made_at=made, valid_until=made + timedelta(minutes=30))
    return Expected(Code.EXPIRED, "was valid until")


def old_snapshot(case: Case) -> Expected:
    """Its snapshot is old, however long the plan is valid."""
    tens = case.chance.randint(7, 1_000)
    snapshot = replace(case.plan.snapshot, at=case.plan.snapshot.at - timedelta(minutes=10 * tens + 2))
    case.plan = replace(case.plan, snapshot=snapshot)
    # The last digit goes on while a busy machine gets there.
    return Expected(Code.OLD_SNAPSHOT, f"rests on is {tens}")
