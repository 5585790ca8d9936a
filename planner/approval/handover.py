"""A plan file on its way into a cluster: what the apply DAG does before it only follows.

Nothing here carries a plan out: that is the controller's, or ``planner apply``'s.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

from planner.documents.approve import (
    CONFIRM_ANNOTATION,
    approval_of,
    approved,
    check_approvable,
    digest_in,
    unapproved,
)
from planner.documents.plan import PLAN, read_document, read_plan_or_decision
from planner.errors import BadInputError
from planner.rollout.explain import explain_plan
from planner.rollout.plan import RolloutPlan
from planner.storage.files import write_atomically
from planner.text.printable import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.deployments.plans import ClusterPlans
    from planner.execution.ports import StoredPlan

log = logging.getLogger(__name__)

APPROVE: Final = "Approve"
"""The one answer that approves, as Airflow's question offers it."""


class PlanMessage(TypedDict):
    """A plan as it travels from task to task.

    ``explanation`` is Markdown for a person, who types ``phrases`` to approve it.
    """

    file: str
    name: str
    namespace: str
    digest: str
    is_approved: bool
    explanation: str
    phrases: list[str]


def read_plan(path: Path, namespace: str | None = None, extra_lines: Sequence[str] = ()) -> PlanMessage:
    """Return what is to be known of a plan file; ``namespace`` where it is not the file's own.

    ``extra_lines`` are lines that the explanation has besides the plan's own.

    Raises ``BadInputError`` for what is no plan, or is a decision to hold.
    """
    plan = read_plan_or_decision(path)
    if not isinstance(plan, RolloutPlan):
        raise BadInputError(f"{path} is a decision to hold: there is nothing to apply")
    document = read_document(path)
    name = document["metadata"].get("name")
    if not isinstance(name, str):
        raise BadInputError(f"{path}: field metadata.name is missing: a {PLAN.kind} needs one in a cluster")
    return PlanMessage(
        file=str(path),
        name=name,
        namespace=namespace or document["metadata"].get("namespace", "default"),
        digest=digest_in(document),
        is_approved=approval_of(document) == digest_in(document),
        explanation="\n".join(f"- {line}" for line in (*explain_plan(plan), *extra_lines)),
        phrases=list(plan.confirmations),
    )


def is_approval(answer: Mapping[str, Any]) -> bool:
    """Tell whether a person's answer is a yes, and nothing else."""
    return answer.get("chosen_options") == [APPROVE]


def write_approval(message: PlanMessage, answer: Mapping[str, Any] | None, phrases: Sequence[str] = ()) -> str:
    """Write a person's approval into the plan file and return its digest.

    ``answer`` is what the person answered, ``phrases`` what was typed for steps that set offsets. Raises
    ``BadInputError`` where nobody answered or the answer is no approval, a phrase is missing or the plan was changed
    meanwhile, ``StaleError`` where it holds no longer.
    """
    path = Path(message["file"])
    if answer is None:
        raise BadInputError(f"nobody has approved {path}: the question was marked as answered, which is no answer")
    if not is_approval(answer):
        raise BadInputError(f"{path} was not approved: the answer is {answer.get('chosen_options')}, not {APPROVE}")
    document = read_document(path)
    made = PLAN.parse(document, str(path))
    check_approvable(made, digest_in(document), message["digest"], phrases, datetime.now(UTC))
    write_atomically(path, PLAN.text(approved(document, phrases)))
    person = answer.get("responded_by_user") or {}
    log.info("plan %s approved by %s", message["name"], one_line(str(person.get("name"))))
    return message["digest"]


def hand_over_by_criteria(message: PlanMessage, kubeconfig: Path | None) -> None:
    """Put the plan into the cluster without an approval: the controller approves it there by the policy's criteria.

    So the criteria are asked by its own observation and at its own time. One that is there already stays as it is.
    Raises ``BadInputError`` when the file was changed since, or when another plan has the name; ``OutOfReachError``.
    """
    document = _document(message)
    with _open(kubeconfig, message["namespace"]) as plans:
        submit(plans, unapproved(document))


def hand_over(message: PlanMessage, kubeconfig: Path | None, *, approves: bool, phrases: Sequence[str] = ()) -> None:
    """Put the plan into the cluster with its approval; one that is there already gets its approval and phrases at most.

    ``approves``: a person has just said yes to this digest and typed ``phrases``, so the approval is set by the account
    of ``kubeconfig``. Otherwise it must stand in the file or in the cluster. Raises ``BadInputError`` when it does not,
    when the file was changed since, or when another plan has the name; ``StaleError`` when the plan is over;
    ``OutOfReachError``.
    """
    document = _document(message)
    if approves:
        made = PLAN.parse(document, message["file"])
        check_approvable(made, message["digest"], None, phrases, datetime.now(UTC))
        document = approved(document, phrases)
    with _open(kubeconfig, message["namespace"]) as plans:
        if plans.read(message["name"]) is None and approval_of(document) != message["digest"]:
            raise _not_approved(message)
        stored = submit(plans, document)
        if stored.requests.approval is None and stored.status.approval is None:
            raise _not_approved(message)


def _document(message: PlanMessage) -> dict[str, Any]:
    """Return the plan file's document. Raises ``BadInputError`` when it was changed since the message was made."""
    path = Path(message["file"])
    document = read_document(path)
    PLAN.parse(document, str(path))
    if digest_in(document) != message["digest"]:
        raise BadInputError(
            f"{path} has digest {digest_in(document)}, not {message['digest']}: it was changed meanwhile"
        )
    return document


def submit(plans: "ClusterPlans", document: Mapping[str, Any], *, is_dry: bool = False) -> "StoredPlan":
    """Return the plan as it is in the cluster, made there if it was not yet.

    What its file has and the cluster lacks is carried over: the approval of this digest, and the phrases that were
    typed. Raises ``BadInputError`` when another plan has its name.
    """
    name, digest = str(document["metadata"]["name"]), digest_in(document)
    stored = plans.read(name)
    if stored is None:
        return plans.create(document, is_dry=is_dry)
    if stored.digest != digest:
        raise BadInputError(
            f"there is another plan {name} in namespace {plans.namespace}, with digest {stored.digest}: delete that "
            "one or give this one another name"
        )
    return stored if is_dry else _carry_over(plans, stored, document)


def _carry_over(plans: "ClusterPlans", stored: "StoredPlan", document: Mapping[str, Any]) -> "StoredPlan":
    approval, phrases = approval_of(document), _new_phrases(stored, document)
    if approval not in (None, stored.digest):
        return stored  # approval and phrases were given to what the file was before
    given = stored.requests.approval
    if approval is not None and (given is None or given.digest != stored.digest):
        plans.approve(stored.name, approval, phrases)
    elif phrases:
        plans.annotate(stored.name, {CONFIRM_ANNOTATION: "\n".join(phrases)})
    else:
        return stored
    return plans.read(stored.name) or stored


def _new_phrases(stored: "StoredPlan", document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the phrases to set, those in the cluster among them; none where the file adds none that the plan needs."""
    typed = str(document["metadata"]["annotations"].get(CONFIRM_ANNOTATION) or "").splitlines()
    confirmed = stored.requests.confirmed
    added = tuple(phrase for phrase in stored.plan.confirmations if phrase in typed and phrase not in confirmed)
    return (*confirmed, *added) if added else ()


def _not_approved(message: PlanMessage) -> BadInputError:
    return BadInputError(
        f"plan {message['name']} is not approved: planner approve {message['file']}, or trigger the DAG with "
        '"approve": "ask"'
    )


@contextmanager
def _open(kubeconfig: Path | None, namespace: str) -> "Iterator[ClusterPlans]":
    from planner.deployments.api import RolloutApi  # noqa: PLC0415  needs the kubernetes extra
    from planner.deployments.plans import ClusterPlans  # noqa: PLC0415

    with RolloutApi.connect(kubeconfig) as api:
        yield ClusterPlans(api, namespace)
