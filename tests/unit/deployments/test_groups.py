"""One sample of a group becomes the engine's look at it; the brokers are left out here, their samples are not."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from planner.deployments import groups as module
from planner.deployments.groups import LiveGroups
from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.errors import BadInputError, OutOfReachError, UnknownNameError
from planner.model.samples import GroupSample
from tests.sample_builders import POLICY, START, deployment, watch

NOW = START + timedelta(hours=1)


@dataclass
class Brokers:
    """What was asked of the brokers: who opened connections, how often, and how many are open; some looks fail."""

    policies: list[ConsumerScalingPolicy] = field(default_factory=list)
    open: int = 0
    fails: bool = False
    unknown: str | None = None

    @contextmanager
    def __call__(self, policy: ConsumerScalingPolicy) -> Iterator[Callable[[datetime], GroupSample]]:
        self.policies.append(policy)
        self.open += 1
        try:
            yield lambda at: self.sample(policy, at)
        finally:
            self.open -= 1

    def sample(self, policy: ConsumerScalingPolicy, at: datetime) -> GroupSample:
        if self.fails:
            raise OutOfReachError("nobody answers")
        if policy.spec.source.group == self.unknown:
            raise UnknownNameError(f"no broker knows group {self.unknown}")
        return replace(watch(1)[0], group=policy.spec.source.group, at=at)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    brokers = Brokers()
    monkeypatch.setattr(module, "open_group", brokers)
    return brokers


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
    asked: Brokers,
) -> None:
    policy = parse_policy(POLICY + "  kubernetes: {context: here}\n", "p")
    assert LiveGroups().look(policy, "shop-2", None, NOW).name == "shop-2"
    (wanted,) = asked.policies
    assert wanted.spec.source.group == "shop-2"
    assert wanted.spec.source.model_copy(update={"group": "shop"}) == policy.spec.source
    assert wanted.spec.kubernetes is None


def test_a_group_that_is_not_there_yet_has_no_members_but_the_policys_own_must_be_there(asked: Brokers) -> None:
    policy = parse_policy(POLICY, "p")
    asked.unknown = "shop-2"
    found = LiveGroups().look(policy, "shop-2", None, NOW)
    assert (found.members, found.owners, found.queues) == ((), None, None)
    asked.unknown = "shop"
    with pytest.raises(UnknownNameError, match="no broker knows group shop"):
        LiveGroups().look(policy, "shop", None, NOW)


@pytest.mark.usefixtures("asked")
def test_members_that_no_longer_do_as_the_policy_says_are_seen_as_they_are() -> None:
    stated = parse_policy(POLICY + "  strategy: AVG_BY_CIRCLE\n", "p")
    found = LiveGroups().look(stated, "shop", None, NOW)
    assert (found.strategy, found.misplaced) == ("AVG", 0), "the plan that changes it says which one is right"


def test_without_a_policy_nobody_knows_the_brokers() -> None:
    with pytest.raises(BadInputError, match="group shop stands in its policy"):
        LiveGroups().look(None, "shop", None, NOW)


def test_connections_are_kept_from_look_to_look_and_end_with_the_object(asked: Brokers) -> None:
    policy, groups = parse_policy(POLICY, "p"), LiveGroups()
    for name in ("shop", "shop", "shop-2", "shop"):
        assert groups.look(policy, name, None, NOW).name == name
    assert [one.spec.source.group for one in asked.policies] == ["shop", "shop-2"]
    assert asked.open == 2
    del groups
    assert asked.open == 0


def test_a_look_that_fails_ends_its_connections_and_the_next_one_opens_them_anew(asked: Brokers) -> None:
    policy, groups = parse_policy(POLICY, "p"), LiveGroups()
    groups.look(policy, "shop", None, NOW)
    asked.fails = True
    with pytest.raises(OutOfReachError):
        groups.look(policy, "shop", None, NOW)
    assert asked.open == 0
    asked.fails = False
    groups.look(policy, "shop", None, NOW)
    assert (asked.open, len(asked.policies)) == (1, 2)
    groups.close()
    assert asked.open == 0
