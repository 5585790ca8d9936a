"""A group whose members run in pods of several workloads: one sentence that names them, and no circle of remedies."""

from dataclasses import replace

import pytest

from planner.decision.decision import HoldCause
from planner.decision.hold_reasons import first_reason_to_hold
from planner.documents.data import SNAPSHOT
from planner.documents.policy import parse_policy
from planner.errors import BadInputError
from planner.model.deployments import AlsoServing
from planner.model.pods import Workload
from planner.model.snapshot import GroupSnapshot
from tests.builders import OBJECTIVE, podded
from tests.sample_builders import POLICY
from tests.unit.workload.builders import deployment

OTHER = AlsoServing(Workload("Rollout", "shop", "app-next"), 1)


def served(*others: AlsoServing, per_pod: int | None = None) -> GroupSnapshot:
    """Return five members, of which the policy's Deployment of three pods runs three."""
    taken = podded(5, 1, 20)
    return replace(
        taken,
        pods=taken.pods[:3],
        deployment=deployment(also_serving=others),
        members_per_pod=per_pod,
        members_per_pod_source="the pods of 2 of 5 members are not known",
    )


@pytest.mark.parametrize("per_pod", [None, 1])
def test_the_hold_names_the_workloads_whatever_members_a_pod_are_stated(per_pod: int | None) -> None:
    """Red where the members that others run are first asked after as ``membersPerPod``, then as a rebalance."""
    taken = served(OTHER, per_pod=per_pod)
    cause, sentence = first_reason_to_hold(taken, OBJECTIVE, taken.at) or (None, "")
    assert cause is HoldCause.SEVERAL_DEPLOYMENTS
    assert "pods of 2 workloads, Deployment shop/app (3), Rollout shop/app-next (1), and 1 elsewhere" in sentence
    alone = served(per_pod=per_pod)
    cause, _ = first_reason_to_hold(alone, OBJECTIVE, alone.at) or (None, "")
    assert cause is (HoldCause.UNKNOWN_PODS if per_pod is None else HoldCause.UNSETTLED)


def test_a_snapshot_keeps_them_and_one_without_has_the_digest_that_it_had() -> None:
    assert SNAPSHOT.parse(SNAPSHOT.dump(served(OTHER)), "x").deployment == served(OTHER).deployment
    assert "also_serving" not in SNAPSHOT.body(served())["deployment"]


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("apiVersion: v1, kind: ReplicationController", r"scaleTargetRef.*an API version with its group"),
        ("apiVersion: batch/v1, kind: Job", r"scaleTargetRef.*a Job has no sub-resource scale"),
        ("kind: '../secrets'", r"scaleTargetRef.*a kind such as Deployment"),
        ("apiVersion: argoproj.io/v1alpha1, kind: Rollout", r"kubernetes beside a scaleTargetRef of kind Rollout"),
    ],
)
def test_a_policy_that_names_what_cannot_be_scaled_hears_why(reference: str, sentence: str) -> None:
    text = POLICY.replace("scaleTargetRef: {", f"scaleTargetRef: {{{reference}, ")
    assert text != POLICY
    with pytest.raises(BadInputError, match=sentence):
        parse_policy(text, "p.yaml")
