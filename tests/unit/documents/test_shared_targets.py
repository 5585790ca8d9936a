"""Two policies of one target: each would set the count for its own group alone."""

from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.policy_folder import twins
from tests.builders import snapshot
from tests.decidable import policy_of


def policy(name: str, group: str, target: str, kind: str = "Deployment") -> ConsumerScalingPolicy:
    """Return a policy of that name for a group and a target."""
    base = policy_of(snapshot()).model_dump(by_alias=True)
    base["metadata"]["name"], base["spec"]["source"]["group"] = name, group
    base["spec"]["scaleTargetRef"] = {"name": target, "kind": kind}
    return ConsumerScalingPolicy.model_validate(base)


def test_two_policies_of_one_target_are_refused_by_name() -> None:
    """Red when groups and names alone are compared."""
    told = twins([("a.yaml", policy("a", "g1", "app")), ("b.yaml", policy("b", "g2", "app"))])
    assert set(told) == {"a.yaml", "b.yaml"}
    assert "policies a.yaml and b.yaml have the same target Deployment shop/app: each would set" in told["a.yaml"]


def test_targets_of_another_name_or_kind_are_others() -> None:
    targets = {"a": ("app", "Deployment"), "b": ("app", "StatefulSet"), "c": ("x", "Deployment")}
    several = [(name, policy(name, f"group-{name}", *target)) for name, target in targets.items()]
    assert not twins(several)
