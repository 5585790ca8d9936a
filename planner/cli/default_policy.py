"""The policy of somebody who has none yet: of ``planner advise`` with bounds, of ``planner init`` without them."""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from planner.cli.address import Address
    from planner.cli.target import Target
    from planner.documents.policy import ConsumerScalingPolicy
    from planner.model.samples import GroupSample

BACKLOG_GONE_S: Final = 600.0
"""A backlog is to be gone within ten minutes, as in README's policy."""

GROWTH: Final = 10
FEWEST_HIGHEST: Final = 20
"""No default bound is more than ten times the present members, or 20 where that is less: more must be stated."""

MOST: Final = 10_000
"""The largest bound that a policy takes."""

KAFKA_CLIENT: Final = "4.1.0"
"""No broker knows a Kafka client's release and settings: the price supposes the Java client and its defaults."""


def default_highest(sample: "GroupSample", replicas: int = 0) -> int:
    """Return the largest count that is considered unless somebody says so: no consumer without a queue.

    The number of data queues, at most ``GROWTH`` times the present members or ``FEWEST_HIGHEST``, and no fewer than
    the present members or the Deployment's ``replicas``. Members that pop share messages, so that queues bound nothing.
    """
    from planner.snapshot.delivery import pops

    present = max(len(sample.members), replicas)
    grown = max(FEWEST_HIGHEST, GROWTH * present)
    if pops(sample):
        return grown
    queues = sum(not queue.is_retry for queue in sample.routes.read_queues)
    return max(1, present, min(queues, grown))


def default_policy(
    address: "Address",
    sample: "GroupSample",
    target: "Target | None" = None,
    highest: int | None = None,
    members_per_pod: int | None = None,
    capacity: float | None = None,
) -> "ConsumerScalingPolicy":
    """Return the policy that a new user has for the sample's group; raises ``DocumentError`` for impossible names.

    Its bounds are those of the autoscaler that sets the Deployment's replicas, where there is one; ``highest`` comes
    before its maximum. ``capacity`` is what a person states of one consumer, in messages per second.
    """
    from pydantic import ValidationError

    from planner.documents.format import document_error
    from planner.documents.policy import ConsumerScalingPolicy
    from planner.documents.policy_spec import DEFAULT_UTILISATION
    from planner.model.systems import system_named

    name = policy_name(sample.group)
    lowest, most = _bounds(sample, target, highest)
    spec: dict[str, Any] = {
        "source": address.source(sample.group, sample.cluster),
        "scaleTargetRef": _target_ref(target, name),
        "minReplicas": lowest,
        "maxReplicas": most,
        "objective": {"maxUtilisation": DEFAULT_UTILISATION, "backlogGoneSeconds": BACKLOG_GONE_S},
    }
    if members_per_pod is not None:
        spec["membersPerPod"] = members_per_pod
    if capacity is not None:
        spec["capacity"] = {"messagesPerSecond": capacity}
    if target is not None:
        spec["kubernetes"] = {"kubeconfigFile": target.kubeconfig, "memberLabel": target.member_label}
    if not system_named(sample.system).reports_setup:
        spec["timing"] = {"clientVersion": KAFKA_CLIENT, "brokerVersion": KAFKA_CLIENT}
    metadata = {"name": name, "namespace": target.namespace if target else "default"}
    try:
        return ConsumerScalingPolicy.model_validate({"metadata": metadata, "spec": spec})
    except ValidationError as error:
        raise document_error(error, f"the policy of group {sample.group}") from error


def _target_ref(target: "Target | None", name: str) -> dict[str, str]:
    kind = target.deployment.kind if target and target.deployment else None
    return {**({"kind": kind} if kind else {}), "name": target.name if target else name}


def _bounds(sample: "GroupSample", target: "Target | None", highest: int | None) -> tuple[int, int]:
    """Return the fewest and the most pods; an autoscaler may go down to none, a policy keeps one."""
    scaler = target.autoscaler if target else None
    if scaler is None:
        replicas = target.deployment.replicas if target and target.deployment else 0
        return 1, min(highest or default_highest(sample, replicas), MOST)
    most = min(highest or scaler.maximum, MOST)
    return max(1, min(scaler.minimum, most)), most


def policy_name(group: str) -> str:
    """Return a Kubernetes name for the group's policy: small letters, digits, points and hyphens."""
    signs = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "-.") else "-" for sign in group.lower())
    return signs[:200].strip("-.") or "group"


def without_bounds(policy: "ConsumerScalingPolicy") -> "ConsumerScalingPolicy":
    """Return the policy with the objective of those that state no bound: the count that costs least."""
    from planner.documents.policy_spec import ObjectiveSpec

    return policy.model_copy(update={"spec": policy.spec.model_copy(update={"objective": ObjectiveSpec()})})


def with_capacity(policy: "ConsumerScalingPolicy", messages_per_s: float) -> "ConsumerScalingPolicy":
    """Return the policy with what one consumer can do, in messages per second."""
    from planner.documents.policy_spec import CapacitySpec

    stated = CapacitySpec.model_validate({"messagesPerSecond": messages_per_s})
    return policy.model_copy(update={"spec": policy.spec.model_copy(update={"capacity": stated})})


def with_window(policy: "ConsumerScalingPolicy", watched_s: float) -> "ConsumerScalingPolicy":
    """Return the policy with the window that was watched, a minute at least and its own window at most."""
    from planner.documents.policy_spec import WindowSpec

    own = policy.spec.window
    seconds = max(60, min(own.seconds, int(watched_s)))
    spec = policy.spec.model_copy(update={"window": WindowSpec(seconds=seconds, percentile=own.percentile)})
    return policy.model_copy(update={"spec": spec})
