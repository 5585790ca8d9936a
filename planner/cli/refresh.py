"""``planner refresh``: the plan of the same request on fresh data, and what is different in it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.console import FormatOption, errors, print_next, text_console
from planner.cli.making import Destination, Forecasts, PlanOutput, destination_of, snapshot_beside, write_document
from planner.cli.policy_reading import is_object, read_policy, spelt
from planner.cli.rollouts import Kubeconfig, Namespace, open_cluster, read_plan_file
from planner.cli.snapshot import LONGEST_S, take_live
from planner.errors import BadInputError, StaleError

if TYPE_CHECKING:
    from planner.documents.policy import ConsumerScalingPolicy
    from planner.execution.progress import RolloutStatus
    from planner.model.snapshot import GroupSnapshot
    from planner.rollout.differences import Difference
    from planner.rollout.plan import DecisionRecord, RolloutPlan


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The plan as it was and as it is made anew, ``None`` where the answer is a hold now; ``record`` is its decision.

    ``record`` is ``None`` for a migration, which takes no decision. ``document`` is the plan's or the decision's.
    """

    before: "RolloutPlan"
    after: "RolloutPlan | None"
    record: "DecisionRecord | None"
    document: dict[str, Any]

    @property
    def differences(self) -> "tuple[Difference, ...]":
        """What is different between the two."""
        from planner.rollout.differences import plan_differences

        if self.after is not None:
            return plan_differences(self.before, self.after)
        assert self.record is not None
        return plan_differences(self.before, self.record.decision)


def refresh(
    plan: Annotated[Path, typer.Argument(help="Plan file, for example one that went stale.", show_default=False)],
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy",
            "-p",
            help="ConsumerScalingPolicy: a file, or k8s://NAMESPACE/NAME.",
            show_default="the plan's policy in its namespace",
        ),
    ] = None,
    observe_seconds: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=LONGEST_S,
            help="How long to watch the group, a sample every 5 s.",
            show_default="the policy's window, or its stabilisation where that is longer",
        ),
    ] = None,
    output: PlanOutput = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    data: Forecasts = None,
    form: FormatOption = None,
) -> None:
    """Observe the plan's group again, make the plan anew for the same request, and show what is different.

    The request is the policy's count, or the migration that the plan names. The new plan has a digest of its own and
    needs its own approval. A plan that is approved in the cluster, in progress or carried out is refused.

    Exit codes: 0 there is a new plan, 1 the answer is a hold now, the migration is refused, or the plan is approved, in
    progress or has been carried out, 2 bad usage or input, 3 brokers or the cluster are out of reach.
    """
    from planner.documents.plan import PLAN

    to = destination_of(output, form)
    document = read_plan_file(plan)
    before = PLAN.parse(document, str(plan))
    request = _request(document, before, plan)
    plan_namespace = namespace or document["metadata"].get("namespace", "default")
    source = policy or Path(f"k8s:/{plan_namespace}/{before.policy}")
    parsed_policy = read_policy(source, kubeconfig)
    _check_policy(before, parsed_policy, source)
    _check_open(
        document,
        plan_namespace,
        kubeconfig,
        is_in_cluster=is_object(source) or parsed_policy.spec.kubernetes is not None,
    )
    taken = take_live(parsed_policy, observe_seconds)
    result = (
        _decide(before, taken, parsed_policy, data)
        if request is None
        else _migrate(before, taken, parsed_policy, request)
    )
    _write(result, taken, to)
    if to.answer is not None:
        _print(result, plan, to)
    if result.after is None:
        raise typer.Exit(1)


def _request(document: dict[str, Any], before: "RolloutPlan", plan: Path) -> dict[str, Any] | None:
    """Return the migration that was asked for; ``None`` for a plan of a count. Raises ``BadInputError``."""
    from planner.documents.migration import request_in

    if before.migration is None:
        return None
    request = request_in(document, str(plan))
    if request is None:
        raise BadInputError(
            f"{plan} does not keep what was asked for, as plans of earlier releases: make it anew with planner migrate"
        )
    return request


def _check_policy(before: "RolloutPlan", policy: "ConsumerScalingPolicy", source: Path) -> None:
    """Raise ``BadInputError`` unless the policy is the one that the plan is of."""
    bounds = policy.bounds
    pairs = (
        (f"policy {before.policy}", f"policy {bounds.policy}"),
        (f"{before.group.system} group {before.group.group}", f"{bounds.group.system} group {bounds.group.group}"),
        (before.target, bounds.target),
    )
    for of_plan, of_policy in pairs:
        if of_plan != of_policy:
            raise BadInputError(
                f"the plan is of {of_plan}, but {spelt(source)} is of {of_policy}: name the plan's own policy"
            )


def _check_open(document: dict[str, Any], namespace: str, kubeconfig: Path | None, *, is_in_cluster: bool) -> None:
    """Raise ``StaleError`` for a plan that somebody carries out, may do so at any time, or has carried out.

    Its status is in the cluster, or in the file where that was read from one. Where no cluster is known of, this says
    so: nobody then knows whether the plan was carried out.
    """
    from planner.documents.status import parse_status

    name = str(document["metadata"]["name"])
    if "status" in document:
        _check_phase(name, parse_status(document["status"], name))
    if kubeconfig is None and not is_in_cluster:
        errors.print(
            f"planner: whether plan {name} was carried out is not known: its policy names no cluster, nor does "
            "--kubeconfig"
        )
        return
    from planner.deployments.plans import ClusterPlans
    from planner.documents.approve import digest_in

    with open_cluster(kubeconfig) as api:
        stored = ClusterPlans(api, namespace).read(name)
    if stored is not None and stored.digest == digest_in(document):
        _check_phase(name, stored.status)


def _check_phase(name: str, status: "RolloutStatus") -> None:
    from planner.execution.phases import Phase

    phase = status.phase
    if phase is Phase.APPROVED:
        raise StaleError(f"plan {name} is approved and may begin at any time: planner abort {name} it first")
    if phase.is_in_progress and not phase.is_final:
        raise StaleError(f"plan {name} is in progress ({phase}): planner status {name} shows how far it has come")
    if phase in (Phase.SUCCEEDED, Phase.ROLLED_BACK, Phase.STUCK):
        raise StaleError(f"plan {name} has ended as {phase}: make a new one with planner plan or planner migrate")


def _decide(
    before: "RolloutPlan", taken: "GroupSnapshot", policy: "ConsumerScalingPolicy", data: Path | None
) -> Refreshed:
    """Return what the policy's decision on the fresh snapshot is."""
    from planner import pipeline
    from planner.documents.plan import DECISION, document_name
    from planner.storage.track_records import read_track

    outcomes = pipeline.simulate(taken, policy)
    record = pipeline.decide(taken, outcomes, policy, datetime.now(UTC))
    made = pipeline.plan(taken, record, policy, outcomes)
    if made is None:
        return Refreshed(before, None, record, DECISION.document(record, document_name(record)))
    doubts = read_track(data, record.group, record.decision.decided_at).doubts if data else ()
    return Refreshed(before, made, record, pipeline.plan_document(made, record, policy, doubts))


def _migrate(
    before: "RolloutPlan", taken: "GroupSnapshot", policy: "ConsumerScalingPolicy", request: dict[str, Any]
) -> Refreshed:
    """Return the same migration, planned on the fresh snapshot. Raises ``RefusedError`` where it would do harm now."""
    from planner import pipeline
    from planner.documents.migration import parse_request

    made = pipeline.migrate(taken, parse_request(request, "the plan's request"), policy, datetime.now(UTC))
    return Refreshed(before, made, None, pipeline.migration_document(made, policy, request))


def _write(result: Refreshed, taken: "GroupSnapshot", to: Destination) -> None:
    """Write plan or decision where it goes, and beside a file the snapshot that it rests on."""
    from planner.documents.data import SNAPSHOT
    from planner.documents.plan import DECISION, PLAN
    from planner.storage.files import write_atomically

    kind = DECISION if result.after is None else PLAN
    write_document(result.document, kind.text(result.document), to)
    if to.file is not None:
        write_atomically(snapshot_beside(to.file), SNAPSHOT.dump(taken))


def _print(result: Refreshed, plan: Path, to: Destination) -> None:
    """Print what is different, and the next command."""
    from planner.documents.plan import DIGEST_ANNOTATION, PLAN

    assert to.answer is not None
    old, new = PLAN.digest(result.before), str(result.document["metadata"]["annotations"][DIGEST_ANNOTATION])
    step = _next(result, plan, to.file)
    if not to.answer.is_text:
        changes = [
            {"what": difference.what, "before": difference.before, "after": difference.after}
            for difference in result.differences
        ]
        digest = {"before": old, "after": None if result.after is None else new}
        file = None if to.file is None else str(to.file)
        body = {"hold": result.after is None, "digest": digest, "changes": changes, "file": file, "next": step}
        to.answer.write("RefreshSummary", body)
        return
    console = text_console()
    for line in result.differences:
        console.print(f"{line.what}:", style="bold")
        console.print(f"  - {line.before}", style="red", soft_wrap=True)
        console.print(f"  + {line.after}", style="green", soft_wrap=True)
    if not result.differences:
        console.print("Nothing is different but the times.")
    if result.after is not None:
        console.print(f"Digest {old} -> {new}: the new plan needs its own approval.", soft_wrap=True)
    if to.file is not None:
        console.print(f"{'Plan' if result.after else 'Decision'} written to {to.file}", soft_wrap=True)
    print_next(step)


def _next(result: Refreshed, plan: Path, file: Path | None) -> str | None:
    from planner.rollout.next_command import approve_command

    if result.after is None:
        return None
    return approve_command(result.after, str(file)) if file else f"the same command with -o {plan}"
