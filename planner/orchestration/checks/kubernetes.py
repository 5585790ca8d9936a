"""The Kubernetes account's rights, asked of the API server (``SelfSubjectAccessReview``); nothing is changed."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import MissingExtraError, PlannerError
from planner.orchestration.checks.result import CheckSettings
from planner.policies.fleet import ClusterNamespace, policy_location, read_fleet
from planner.text.words import some

if TYPE_CHECKING:
    from planner.deployments.rights import Right
    from planner.documents.policy import ConsumerScalingPolicy

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
    reading: dict[tuple[Login, str], list[ConsumerScalingPolicy]] = {}
    for policy in policies:
        if (spec := policy.spec.kubernetes) is not None:
            login = (spec.kubeconfig_file, spec.context)
            reading.setdefault((login, policy.metadata.namespace), []).append(policy)
    if not reading and settings.kubeconfig is None:
        yield True, "no policy has spec.kubernetes and no kubeconfig for plans is named: no account is needed"
        return
    yield from _answers(reading, settings.kubeconfig, sorted({policy.metadata.namespace for policy in policies}))


def _answers(
    policies: Mapping[tuple[Login, str], list["ConsumerScalingPolicy"]],
    kubeconfig: Path | None,
    namespaces: Iterable[str],
) -> Iterator[tuple[bool, str]]:
    try:
        from planner.deployments.rights import HANDING_OVER, reading  # noqa: PLC0415  needs the kubernetes extra
    except ImportError as error:
        raise MissingExtraError("reading Deployments", "kubernetes") from error
    for (login, namespace), read_by in policies.items():
        kinds = sorted({(policy.spec.target_api_version, policy.spec.target_kind) for policy in read_by})
        rights = reading(kinds)
        what = f"read the targets of {some([policy.metadata.name for policy in read_by])}"
        yield _rights(login, namespace, rights, what, "k8s/rbac/reader-role.yaml", kinds)
    if kubeconfig is not None:
        for namespace in namespaces:
            yield _rights((kubeconfig, None), namespace, HANDING_OVER, "hand plans over", "docs/apply.md")


def _rights(
    login: Login,
    namespace: str,
    rights: "Iterable[Right]",
    what: str,
    where: str,
    kinds: Iterable[tuple[str, str]] = (),
) -> tuple[bool, str]:
    from planner.deployments.api import RolloutApi  # noqa: PLC0415
    from planner.deployments.rights import describe_rights, lacking, reading_scale  # noqa: PLC0415

    try:
        with RolloutApi.connect(*login) as api:
            missing = lacking(api, namespace, (*rights, *reading_scale(kinds, api)))
            server = api.server
    except PlannerError as error:
        return False, f"namespace {namespace}, to {what}: {error}"
    if missing:
        problem = f"{server} does not let us {what} in namespace {namespace}: missing {describe_rights(missing)}"
        return False, f"{problem}: grant what {where} lists"
    return True, f"{server} lets us {what} in namespace {namespace}"
