"""The manifest that is named for a missing right is one that grants it."""

from dataclasses import replace

import pytest

from planner.deployments.rights import Right, describe_rights, manifests_for, needed
from planner.rollout.steps import CloneOffsets, MovedQueues, ResetOffsets, StartConsumers
from tests.pod_controllers import K8S, documents
from tests.pod_groups import plan_for
from tests.step_builders import STEPS

PLAN = plan_for("app", ["a", "b"], [StartConsumers(2, 3, 60, MovedQueues(0, 8), undo="set 2")])
ON_THE_CLUSTER = tuple(step for step in STEPS if not isinstance(step, CloneOffsets | ResetOffsets))
STATEFUL = replace(PLAN, target_kind="StatefulSet")
ROLLOUT = replace(PLAN, target_kind="Rollout", target_api_version="argoproj.io/v1alpha1")
RIGHTS = sorted(
    {
        *needed(replace(PLAN, steps=ON_THE_CLUSTER, migration="update")),
        *needed(STATEFUL),
        *needed(ROLLOUT, ("argoproj.io", "v1alpha1", "rollouts")),
    }
)


@pytest.mark.parametrize("right", RIGHTS, ids=lambda right: describe_rights([right]))
def test_the_manifest_that_is_named_grants_the_right(right: Right) -> None:
    (path,) = manifests_for([right])
    name = path.removeprefix("k8s/").removesuffix(".yaml")
    assert (K8S / f"{name}.yaml").exists()
    (role,) = (one for one in documents(name) if one["kind"] == "Role")
    granted = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert right in granted
