"""The policy of somebody who has none yet: what ``planner advise`` decides by and ``planner init`` writes down."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planner.errors import BadInputError

if TYPE_CHECKING:
    from planner.cli.address import Address
    from planner.documents.policy import ConsumerScalingPolicy
    from planner.model.samples import GroupSample

BACKLOG_GONE_S: Final = 600.0
"""A backlog is to be gone within ten minutes, as in README's policy."""

GROWTH: Final = 10
FEWEST_HIGHEST: Final = 20
"""No default bound is more than ten times the present members, or 20 where that is less: whoever wants more says so."""

KAFKA_CLIENT: Final = "4.1.0"
"""No broker knows a Kafka client's release and settings: the price supposes the Java client and its defaults."""


@dataclass(frozen=True, slots=True)
class Target:
    """The Deployment that runs a group, and how its API server is reached; ``None``: counts are of members."""

    namespace: str
    name: str
    kubeconfig: Path | None = None


def default_highest(sample: "GroupSample") -> int:
    """Return the largest count that is considered unless somebody says so: no consumer without a queue.

    The number of data queues, at most ``GROWTH`` times the present members or ``FEWEST_HIGHEST``, and no fewer than
    the present members.
    """
    queues = sum(not queue.is_retry for queue in sample.routes.read_queues)
    present = len(sample.members)
    return max(1, present, min(queues, max(FEWEST_HIGHEST, GROWTH * present)))


def default_policy(
    address: "Address", sample: "GroupSample", target: Target | None = None, highest: int | None = None
) -> "ConsumerScalingPolicy":
    """Return the policy that a new user has for the sample's group; raises ``BadInputError`` for impossible names."""
    from pydantic import ValidationError

    from planner.documents.policy import ConsumerScalingPolicy, Metadata, ObjectiveSpec, PolicySpec, ScaleTargetRef
    from planner.documents.source import KubernetesSpec
    from planner.documents.timing import TimingSpec

    name = policy_name(sample.group)
    timing = TimingSpec(client_version=KAFKA_CLIENT, broker_version=KAFKA_CLIENT) if sample.system == "kafka" else None
    try:
        return ConsumerScalingPolicy(
            metadata=Metadata(name=name, namespace=target.namespace if target else "default"),
            spec=PolicySpec(
                source=address.source(sample.group, sample.cluster),
                scale_target_ref=ScaleTargetRef(name=target.name if target else name),
                kubernetes=KubernetesSpec(kubeconfig_file=target.kubeconfig) if target else None,
                max_replicas=highest or default_highest(sample),
                objective=ObjectiveSpec(backlog_gone_seconds=BACKLOG_GONE_S),
                timing=timing,
            ),
        )
    except ValidationError as error:
        raise BadInputError(
            f"group {sample.group}: no policy can be made for it: {error.errors()[0]['msg']}"
        ) from error


def policy_name(group: str) -> str:
    """Return a Kubernetes name for the group's policy: small letters, digits, points and hyphens."""
    signs = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "-.") else "-" for sign in group.lower())
    return signs[:200].strip("-.") or "group"


def with_window(policy: "ConsumerScalingPolicy", watched_s: float) -> "ConsumerScalingPolicy":
    """Return the policy with the window that was watched, a minute at least and its own window at most."""
    from planner.documents.policy import WindowSpec

    own = policy.spec.window
    seconds = max(60, min(own.seconds, int(watched_s)))
    spec = policy.spec.model_copy(update={"window": WindowSpec(seconds=seconds, percentile=own.percentile)})
    return policy.model_copy(update={"spec": spec})
