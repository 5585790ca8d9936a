"""``planner approve``: allow exactly one plan, by its digest."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import rollouts
from planner.cli.console import FormatOption, Output, answering, text_console
from planner.cli.rollouts import Kubeconfig, Namespace
from planner.errors import BadInputError

if TYPE_CHECKING:
    from planner.deployments.api import RolloutApi
    from planner.execution.ports import StoredPlan
    from planner.rollout.plan import RolloutPlan


def approve(
    plan: Annotated[str, typer.Argument(help="Plan file of planner plan, or the name of a plan in the cluster.")],
    digest: Annotated[
        str | None, typer.Option(help="Approve only if the plan still has this digest.", show_default=False)
    ] = None,
    confirm: Annotated[
        list[str] | None,
        typer.Option(help="A phrase that the plan asks for, word by word; once for each.", show_default=False),
    ] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Approve a plan: write the digest of what is approved into its file, or to the plan in the cluster.

    Any later change of the plan ends the approval. Exit code 1 when the plan holds no longer.
    """
    phrases = tuple(confirm or ())
    with answering(form, output) as answer:
        if rollouts.is_plan_file(plan):
            if namespace is not None or kubeconfig is not None:
                raise BadInputError(f"{plan} is a file: --namespace and --kubeconfig go with the name of a plan")
            made, approval = _approve_file(Path(plan), digest, phrases)
        else:
            made, approval = approve_in_cluster(plan, namespace or "default", kubeconfig, digest, phrases)
        if answer.is_text:
            print_approval(plan, made, approval)
        else:
            answer.write("RolloutApproval", approval)


def _approve_file(
    path: Path, expected_digest: str | None, phrases: Sequence[str]
) -> tuple["RolloutPlan", dict[str, Any]]:
    from planner.documents.approve import approval_of, approved, check_approvable, digest_in
    from planner.documents.plan import PLAN, read_document
    from planner.storage.files import write_atomically

    document = read_document(path)
    made = PLAN.parse(document, str(path))
    digest = digest_in(document)
    check_approvable(made, digest, expected_digest, phrases, datetime.now(UTC))
    is_new = approval_of(document) != digest or bool(phrases)
    if is_new:
        write_atomically(path, PLAN.text(approved(document, phrases)))
    return made, {"file": str(path), "digest": digest, "was_approved": not is_new}


def approve_in_cluster(
    name: str, namespace: str, kubeconfig: Path | None, expected_digest: str | None, phrases: Sequence[str]
) -> tuple["RolloutPlan", dict[str, Any]]:
    """Approve a plan of the cluster if it has the digest ``expected_digest``; return it, and the approval."""
    from planner.deployments.plans import ClusterPlans, no_plan

    with rollouts.open_cluster(kubeconfig) as api:
        plans = ClusterPlans(api, namespace)
        stored = plans.read(name)
        if stored is None:
            raise no_plan(namespace, name)
        check_open(api, stored, expected_digest, phrases)
        before = stored.requests.approval
        is_new = before is None or before.digest != stored.digest or bool(phrases)
        if is_new:
            plans.approve(name, stored.digest, phrases)
            stored = plans.read(name) or stored
    by = stored.requests.approval.by if stored.requests.approval else None
    answer = {"plan": name, "namespace": namespace, "digest": stored.digest, "by": by, "was_approved": not is_new}
    return stored.plan, answer


def check_open(api: "RolloutApi", stored: "StoredPlan", expected_digest: str | None, phrases: Sequence[str]) -> None:
    """Raise ``PlannerError`` unless the plan can be approved now, with these phrases, by the server's clock."""
    from planner.deployments.clock import ServerClock
    from planner.documents.approve import check_approvable

    if stored.status.phase.is_final:
        raise BadInputError(f"plan {stored.name} has ended as {stored.status.phase}: make a new one with planner plan")
    check_approvable(stored.plan, stored.digest, expected_digest, phrases, ServerClock(api.server_time)())


def print_approval(plan: str, made: "RolloutPlan", answer: dict[str, Any]) -> None:
    """Print what was approved, by whom and until when."""
    console = text_console()
    console.print(made.reason, style="bold")
    verb = "Approved already" if answer["was_approved"] else "Approved"
    by = f" by {answer['by']}" if answer.get("by") else ""
    console.print(f"{verb}{by}: {plan} with digest {answer['digest']}", soft_wrap=True)
    console.print(f"It holds until {made.valid_until:%Y-%m-%d %H:%M:%S %Z}.")
