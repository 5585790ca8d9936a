"""The Kubernetes account's rights, asked of the API server (``SelfSubjectAccessReview``); nothing is changed."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import MissingExtraError, PlannerError
from planner.fleet import ClusterNamespace, policy_location, read_fleet
from planner.orchestration.checks.result import CheckSettings
from planner.words import some

if TYPE_CHECKING:
    from planner.deployments.rights import Right

Login = tuple[Path | str | None, str | None]
"""A kubeconfig, or a connection of Airflow that has one, and one of its contexts."""


def check_kubernetes(settings: CheckSettings) -> Iterator[tuple[bool, str]]:
    """Say for each account and namespace whether it may read the Deployments, and hand plans over where it is to.

    Of a namespace whose objects are the policies, say whether their plans and status may be written, too.

    Raises ``BadInputError`` where no policy can be served, ``MissingExtraError`` without the extra ``kubernetes``.
    """
    location = policy_location(settings.policies)
    policies = read_fleet(location).policies
    if isinstance(location, ClusterNamespace):
        from planner.deployments.rights import DECIDING  # noqa: PLC0415  the policies were read with the extra

        what = "decide on its policies"
        yield _rights((location.kubeconfig, None), location.name, DECIDING, what, "k8s/rbac/scheduler.yaml")
    reading: dict[tuple[Login, str], list[str]] = {}
    for policy in policies:
        if (spec := policy.spec.kubernetes) is not None:
            login = (spec.kubeconfig_file, spec.context)
            reading.setdefault((login, policy.metadata.namespace), []).append(policy.metadata.name)
    if not reading and settings.kubeconfig is None:
        yield True, "no policy has spec.kubernetes and no kubeconfig for plans is named: no account is needed"
        return
    yield from _answers(reading, settings.kubeconfig, sorted({policy.metadata.namespace for policy in policies}))


def _answers(
    reading: Mapping[tuple[Login, str], list[str]], kubeconfig: Path | None, namespaces: Iterable[str]
) -> Iterator[tuple[bool, str]]:
    try:
        from planner.deployments.rights import HANDING_OVER, READING  # noqa: PLC0415  needs the kubernetes extra
    except ImportError as error:
        raise MissingExtraError("reading Deployments", "kubernetes") from error
    for (login, namespace), names in reading.items():
        yield _rights(login, namespace, READING, f"read the Deployments of {some(names)}", "k8s/rbac/reader-role.yaml")
    if kubeconfig is not None:
        for namespace in namespaces:
            yield _rights((kubeconfig, None), namespace, HANDING_OVER, "hand plans over", "docs/apply.md")


def _rights(login: Login, namespace: str, rights: "Iterable[Right]", what: str, where: str) -> tuple[bool, str]:
    from planner.deployments.api import RolloutApi  # noqa: PLC0415
    from planner.deployments.rights import describe_rights, lacking  # noqa: PLC0415

    try:
        with RolloutApi.connect(*login) as api:
            missing = lacking(api, namespace, rights)
            server = api.server
    except PlannerError as error:
        return False, f"namespace {namespace}, to {what}: {error}"
    if missing:
        problem = f"{server} does not let us {what} in namespace {namespace}: missing {describe_rights(missing)}"
        return False, f"{problem}: grant what {where} lists"
    return True, f"{server} lets us {what} in namespace {namespace}"
