"""The policy that an option names: a file, or ``k8s://NAMESPACE/NAME``, an object of the cluster."""

from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import BadInputError

if TYPE_CHECKING:
    from planner.documents.policy import ConsumerScalingPolicy

_SCHEME = "k8s:"
"""The first part of the path that an option's ``k8s://NAMESPACE/NAME`` becomes: a path keeps one slash of two."""


def is_object(policy: Path) -> bool:
    """Return whether the option names an object of the cluster."""
    return policy.parts[:1] == (_SCHEME,)


def spelt(policy: Path) -> str:
    """Return the option as a person types it, with both slashes of ``k8s://``."""
    return f"{_SCHEME}//{'/'.join(policy.parts[1:])}" if is_object(policy) else str(policy)


def read_policy(policy: Path, kubeconfig: Path | None = None) -> "ConsumerScalingPolicy":
    """Return the policy in the file, or the object in the cluster of ``kubeconfig``, kubectl's own where it is none.

    What an object names on this host is bounded (``FileRules``). Raises ``BadInputError`` where there is no such policy
    or it is wrong, ``OutOfReachError`` for a cluster that is.
    """
    from planner.documents import policy as documents

    if not is_object(policy):
        return documents.read_policy(policy)
    if len(policy.parts) != 3:
        raise BadInputError(f"option --policy: found {spelt(policy)}, expected a file or k8s://NAMESPACE/NAME")
    from planner.deployments.api import RolloutApi
    from planner.deployments.policies import cluster_policies

    _, namespace, name = policy.parts
    with RolloutApi.connect(kubeconfig) as api:
        parsed_policy = cluster_policies(api, namespace)(name)
    if parsed_policy is None:
        raise BadInputError(
            f"there is no policy {name} in namespace {namespace}: kubectl get csp -n {namespace} lists them"
        )
    return parsed_policy
