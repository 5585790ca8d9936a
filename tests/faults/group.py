"""A stand-in for a consumer group: the ready pods of a namespace are its members, as soon as they are ready.

No broker is asked. What is real is everything else: pods, Deployments, controllers, the API server.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import OutOfReachError
from planner.execution.observation import GroupObservation
from planner.model.deployments import Deployment
from planner.model.queues import Queue
from planner.sources.kubernetes import KubernetesApi
from tests.pod_groups import QUEUES, owned

NEVER_JOINS = "faults.consumerplanner.dev/never-joins"
"""A pod with this annotation becomes ready and is no member."""


def is_ready(pod: dict[str, Any]) -> bool:
    """True for a pod that is ready and stays, by what the API server says of it."""
    if "deletionTimestamp" in pod["metadata"] or pod["status"].get("phase") != "Running":
        return False
    ready = (one for one in pod["status"].get("conditions") or [] if one["type"] == "Ready")
    return any(one["status"] == "True" for one in ready)


@dataclass
class NamespaceGroup:
    """The group of all ready pods of a namespace; each is a member of its own name and owns what ``AVG`` gives it.

    ``changes`` replace parts of the look, as if the group's brokers said so.
    """

    api: KubernetesApi
    changes: dict[str, object] = field(default_factory=dict)

    def look(
        self, _: ConsumerScalingPolicy | None, group: str, deployment: Deployment | None, at: datetime
    ) -> GroupObservation:
        """Return the group as it is now."""
        if deployment is None:
            raise OutOfReachError("the namespace of the group is not known")
        pods = [one for one in self.api.pods(deployment.namespace) if is_ready(one)]
        names = (one["metadata"]["name"] for one in pods if NEVER_JOINS not in one["metadata"].get("annotations", {}))
        members = tuple(sorted(names))
        found = GroupObservation(
            name=group,
            at=at,
            members=members,
            queues=QUEUES,
            owners=owners_of(members),
            strategy="AVG",
            misplaced=0,
            is_rebalancing=False,
            pods=tuple((member, member) for member in members),
        )
        return replace(found, **self.changes)  # type: ignore[arg-type]


def owners_of(members: tuple[str, ...]) -> tuple[tuple[Queue, tuple[str, ...]], ...]:
    """Return who owns each queue."""
    owner = {queue: member for member, queues in owned(members).items() for queue in queues}
    return tuple((queue, (owner[queue],) if queue in owner else ()) for queue in QUEUES)
