"""Approving a plan document: an annotation that names the digest of exactly what is approved.

``kubectl annotate crp NAME consumerplanner.dev/approve=<digest>`` does the same to a plan in a cluster.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from planner.documents.plan import DIGEST_ANNOTATION
from planner.errors import BadInputError, StaleError
from planner.rollout.plan import RolloutPlan

APPROVE_ANNOTATION = "consumerplanner.dev/approve"
APPROVED_BY_ANNOTATION = "consumerplanner.dev/approved-by"
"""Who approved, by the name that the API server knows: it fills it in, or refuses another (k8s/admission)."""
AUTHOR_ANNOTATION = "consumerplanner.dev/planned-by"
"""Who created the plan, by the name that the API server knows: it fills it in, or refuses another (k8s/admission)."""
CONFIRM_ANNOTATION = "consumerplanner.dev/confirm"
"""The phrases that allow a migration to write offsets, one a line, as a person typed them."""


def approved(document: Mapping[str, Any], phrases: Sequence[str] = ()) -> dict[str, Any]:
    """Return the plan document with its approval; an approval of what it was before is replaced."""
    metadata = document["metadata"]
    approval = {APPROVE_ANNOTATION: digest_in(document)}
    confirmed = {CONFIRM_ANNOTATION: "\n".join(phrases)} if phrases else {}
    annotations = {**metadata["annotations"], **approval, **confirmed}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def unapproved(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan document without approval and typed phrases: others give them to it in the cluster."""
    metadata, ours = document["metadata"], (APPROVE_ANNOTATION, APPROVED_BY_ANNOTATION, CONFIRM_ANNOTATION)
    annotations = {name: value for name, value in metadata["annotations"].items() if name not in ours}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def digest_in(document: Mapping[str, Any]) -> str:
    """Return the digest that a plan document carries, which is its spec's once it was parsed."""
    return str(document["metadata"]["annotations"][DIGEST_ANNOTATION])


def approval_of(document: Mapping[str, Any]) -> str | None:
    """Return the digest that the plan document's approval names, ``None`` without one."""
    digest = document["metadata"]["annotations"].get(APPROVE_ANNOTATION)
    return None if digest is None else str(digest)


def check_approvable(
    plan: RolloutPlan, digest: str, expected_digest: str | None, phrases: Sequence[str], at: datetime
) -> None:
    """Raise unless a person may approve this plan at time ``at``.

    ``expected_digest`` is the digest that the person has read, where given. ``StaleError`` when the plan is over,
    ``BadInputError`` for another digest and for a phrase that is missing or belongs to no step.
    """
    if expected_digest is not None and expected_digest != digest:
        raise BadInputError(f"the plan has digest {digest}, not {expected_digest}: read it again with planner explain")
    if at >= plan.valid_until:
        raise StaleError(
            f"the plan held until {plan.valid_until:%Y-%m-%d %H:%M:%S %Z}, now it is {at:%Y-%m-%d %H:%M:%S %Z}: make "
            "a new one with planner plan"
        )
    for phrase in plan.confirmations:
        if phrase not in phrases:
            raise BadInputError(f"the plan asks a person to type what it does: to allow it, add --confirm '{phrase}'")
    for phrase in phrases:
        if phrase not in plan.confirmations:
            raise BadInputError(f"option --confirm: no step asks for the phrase {phrase!r}: leave it out")
