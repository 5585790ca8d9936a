"""Policies as objects of a namespace: reading them, and writing into their status what a run made of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from planner.deployments.api import RolloutApi
from planner.deployments.cluster_state import Policies
from planner.documents.policy import ConsumerScalingPolicy, policy_of
from planner.documents.policy_files import check_files
from planner.documents.policy_status import News, dump_policy_status, next_status, parse_policy_status
from planner.documents.tenant_files import FileRules
from planner.documents.yaml import check_length
from planner.errors import BadInputError, DocumentError, PlannerError

MOST_POLICIES: Final = 5_000
"""Of one namespace; one run could not serve more."""


@dataclass(frozen=True, slots=True)
class PolicyObject:
    """One policy object as it was read: exactly this one is reported on, and this generation of it."""

    uid: str
    generation: int


@dataclass(frozen=True, slots=True)
class ListedPolicy:
    """A policy object: the policy with its document as text, or the ``problem`` that keeps it from being served."""

    name: str
    object: PolicyObject
    policy: ConsumerScalingPolicy | None
    text: str
    problem: str | None = None


def cluster_policies(api: RolloutApi, namespace: str) -> Policies:
    """Return the reader of a policy as it stands in the namespace now.

    Files that it names are read on this host, from its namespace's folder only, and sent to the servers only that an
    administrator listed: ``FileRules``. Raises ``BadInputError`` for rules that cannot be read.
    """
    rules = FileRules.of_environment()

    def read(name: str) -> ConsumerScalingPolicy | None:
        manifest = api.policy(namespace, name)
        if manifest is None:
            return None
        return _parse(_document(manifest, namespace, name), _where(namespace, name), rules)

    return read


def list_policies(api: RolloutApi, namespace: str) -> Sequence[ListedPolicy]:
    """Return all policies of the namespace by name; one that is wrong has its sentence and no policy.

    What a policy may name on this host is bounded as in ``cluster_policies``; nor may it choose a context of our own
    kubeconfig. Raises ``BadInputError`` for rules that cannot be read and for more than ``MOST_POLICIES``,
    ``OutOfReachError`` where the server does not answer or does not allow it.
    """
    rules, manifests = FileRules.of_environment(), api.policies(namespace)
    if len(manifests) > MOST_POLICIES:
        raise BadInputError(
            f"namespace {namespace} holds {len(manifests)} policies, expected {MOST_POLICIES} at most: spread them "
            "over several namespaces, with a run for each"
        )
    return sorted((_read_listed(manifest, namespace, rules) for manifest in manifests), key=lambda listed: listed.name)


def read_listed(api: RolloutApi, namespace: str, name: str) -> ListedPolicy | None:
    """Return one policy of the namespace as ``list_policies`` has it, ``None`` where there is none of the name."""
    manifest = api.policy(namespace, name)
    return None if manifest is None else _read_listed(manifest, namespace, FileRules.of_environment())


def _read_listed(manifest: Mapping[str, Any], namespace: str, rules: FileRules) -> ListedPolicy:
    meta = manifest["metadata"]
    name, read = str(meta["name"]), PolicyObject(str(meta["uid"]), int(meta["generation"]))
    document, where = _document(manifest, namespace, name), _where(namespace, name)
    text = json.dumps(document)
    try:
        policy = _parse(document, where, rules)
        _check_context(policy, where)
    except PlannerError as error:
        return ListedPolicy(name, read, None, text, str(error))
    return ListedPolicy(name, read, policy, text)


def _where(namespace: str, name: str) -> str:
    return f"policy {namespace}/{name}"


def _document(manifest: Mapping[str, Any], namespace: str, name: str) -> dict[str, Any]:
    """Return the document that a file of the same policy would hold."""
    return {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {"name": name, "namespace": namespace},
        "spec": manifest["spec"],
    }


def _parse(document: Mapping[str, Any], where: str, rules: FileRules) -> ConsumerScalingPolicy:
    """Return the policy in the object, which is no larger than a file of it may be: a run keeps it as one."""
    check_length(json.dumps(document), where)
    policy = policy_of(document, where)
    check_files(policy, rules, where)
    return policy


def _check_context(policy: ConsumerScalingPolicy, where: str) -> None:
    kubernetes = policy.spec.kubernetes
    if kubernetes is not None and kubernetes.context is not None and kubernetes.kubeconfig_file is None:
        raise DocumentError(
            f"{where}: field spec.kubernetes.context: found {kubernetes.context}, expected none without "
            "kubeconfigFile: it would choose among the planner's own clusters, so leave it out"
        )


def write_policy_status(
    api: RolloutApi,
    namespace: str,
    name: str,
    read: PolicyObject,
    news: News,
    at: datetime,
    next_look_at: datetime | None = None,
) -> None:
    """Write what a run of time ``at`` made of a policy into the status of the object that it read.

    An object that is gone, or another one by now, is left alone, and so is one of which a later run has written. Raises
    ``OutOfReachError``, ``ForbiddenError`` without the right.
    """
    manifest = api.policy(namespace, name)
    if manifest is None or manifest["metadata"]["uid"] != read.uid:
        return
    before = parse_policy_status(manifest.get("status"))
    if before.last_decision is not None and before.last_decision.at > at:
        return
    after = next_status(before, news, at, read.generation, next_look_at)
    body = {"metadata": {"uid": read.uid}, "status": dump_policy_status(after)}
    api.patch_policy_status(namespace, name, body)
