"""A stand-in for a consumer group: the ready pods of a Deployment are its members, their word is taken for it.

No broker is asked. What is real is everything else: the pods, their Deployment, the API server. Run as
``python -m tests.pod_groups`` it is ``planner`` with this stand-in in place of the brokers.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from planner.allocation.group import allocate_group
from planner.allocation.registry import find_strategy
from planner.cli import rollouts
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import OutOfReachError
from planner.execution.observation import GroupObservation
from planner.model.deployments import Deployment
from planner.model.queues import MessageQueue
from planner.rollout.plan import Forecast, GroupRef, OwnedQueues, Preconditions, RolloutPlan, SnapshotRef
from planner.rollout.steps import MovedQueues, Step
from tests.step_builders import migration_of

GROUP = GroupRef("rocketmq", "DefaultCluster", "billing")
QUEUES = tuple(MessageQueue("orders", "broker-a", number) for number in range(8))


def owned(members: Sequence[str]) -> dict[str, list[MessageQueue]]:
    """Return what ``AVG`` gives each member."""
    answer = allocate_group(find_strategy("AVG"), QUEUES, sorted(members)).answer() if members else {}
    return {member: list(queues) for member, queues in answer.items()}


class PodGroups:
    """Every ready pod that stays is a member of its own name and owns what ``AVG`` gives it."""

    def look(
        self, _: ConsumerScalingPolicy | None, group: str, deployment: Deployment | None, at: datetime
    ) -> GroupObservation:
        """Return the group of the Deployment's ready pods."""
        if deployment is None or deployment.pods is None:
            raise OutOfReachError("the pods could not be read")
        members = tuple(sorted(pod.name for pod in deployment.pods if pod.is_ready and not pod.is_ending))
        owners = {queue: member for member, queues in owned(members).items() for queue in queues}
        return GroupObservation(
            name=group,
            at=at,
            members=members,
            queues=QUEUES,
            owners=tuple((queue, (owners[queue],) if queue in owners else ()) for queue in QUEUES),
            strategy="AVG",
            misplaced=0,
            is_rebalancing=False,
            pods=tuple((member, member) for member in members),
        )


def plan_for(
    deployment: str, members: Sequence[str], steps: Sequence[Step], migration: str | None = None
) -> RolloutPlan:
    """Return a plan that fits a group of these pods now."""
    now = datetime.now(UTC).replace(microsecond=0)
    before = tuple(
        OwnedQueues(member, (f"orders/broker-a/{queues[0].queue_id}-{queues[-1].queue_id}",))
        for member, queues in owned(members).items()
    )
    return RolloutPlan(
        policy="billing",
        group=GROUP,
        deployment=deployment,
        snapshot=SnapshotRef("sha256:snapshot", now),
        made_at=now,
        valid_until=now + timedelta(minutes=15),
        reason="because",
        rejected=(),
        preconditions=Preconditions(len(members), tuple(sorted(members)), "AVG", len(QUEUES)),
        forecast=Forecast(moved_queues=MovedQueues(0, 8), owners_before=before, owners_after=before, unknowns=()),
        steps=tuple(steps),
        migration=migration or migration_of(steps),
    )


def main() -> None:
    """Run ``planner`` with the stand-in."""
    from planner.cli.main import main as planner

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollouts, "live_groups", PodGroups)
        planner()


if __name__ == "__main__":
    main()
