"""One sample of a group becomes the engine's look at it; the brokers are left out here, their samples are not."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from planner.deployments import groups as module
from planner.deployments.groups import LiveGroups
from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.errors import BadInputError
from planner.model.samples import GroupSample
from tests.sample_builders import POLICY, START, deployment, watch

NOW = START + timedelta(hours=1)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ConsumerScalingPolicy]:
    """Return the policies by which samples were asked for."""
    policies: list[ConsumerScalingPolicy] = []

    def one(policy: ConsumerScalingPolicy, seconds: float) -> Iterator[GroupSample]:
        policies.append(policy)
        assert seconds == 0
        yield replace(watch(1)[0], group=policy.spec.source.group)

    monkeypatch.setattr(module, "watch", one)
    return policies


@pytest.mark.usefixtures("asked")
def test_members_owners_and_pods_are_seen_at_the_servers_time() -> None:
    facts = deployment(("10.0.0.1", "10.0.0.2", "10.0.0.3"))
    found = LiveGroups().look(parse_policy(POLICY, "p"), "shop", facts, NOW)
    assert (found.name, found.at, found.strategy, found.misplaced) == ("shop", NOW, "AVG", 0)
    assert found.members == ("10.0.0.1@1", "10.0.0.2@1", "10.0.0.3@1")
    assert found.owners is not None
    assert all(len(owners) == 1 for _, owners in found.owners)
    assert {pod for _, pod in found.pods} == {pod.name for pod in facts.pods or ()}
    assert found.lag_messages == 0
    assert found.lag_seconds is None


def test_another_group_is_looked_for_on_the_same_brokers_and_the_deployment_is_not_read_twice(
    asked: list[ConsumerScalingPolicy],
) -> None:
    policy = parse_policy(POLICY + "  kubernetes: {context: here}\n", "p")
    assert LiveGroups().look(policy, "shop-2", None, NOW).name == "shop-2"
    (wanted,) = asked
    assert wanted.spec.source.group == "shop-2"
    assert wanted.spec.source.model_copy(update={"group": "shop"}) == policy.spec.source
    assert wanted.spec.kubernetes is None


def test_without_a_policy_nobody_knows_the_brokers() -> None:
    with pytest.raises(BadInputError, match="group shop stands in its policy"):
        LiveGroups().look(None, "shop", None, NOW)
