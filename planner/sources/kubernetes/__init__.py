"""What an API server reports of a consumer Deployment: facts, pods, and what else sets its replicas. Only reads.

Needs the extra ``kubernetes``. ``errors``, ``kubeconfig`` and ``api`` (the two modules that touch the official client),
``objects`` and ``scale_targets`` (JSON to our types), ``workload`` (``read_workload``, ``read_pods``).
"""

from planner.errors import MissingExtraError

try:
    import kubernetes  # noqa: F401
except ImportError as error:
    raise MissingExtraError("reading Kubernetes", "kubernetes") from error

from planner.sources.kubernetes.api import KubernetesApi
from planner.sources.kubernetes.errors import AnswerError, ForbiddenError, NotLetInError
from planner.sources.kubernetes.kubeconfig import own_namespace
from planner.sources.kubernetes.workload import complete_workload, read_named, read_pods, read_workload

__all__ = [
    "AnswerError",
    "ForbiddenError",
    "KubernetesApi",
    "NotLetInError",
    "complete_workload",
    "own_namespace",
    "read_named",
    "read_pods",
    "read_workload",
]
