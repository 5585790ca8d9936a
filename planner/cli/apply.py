"""``planner apply``: carry out exactly the plan that was approved."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import rollouts
from planner.cli.console import Answer, FormatOption, Output, answering, errors, text_console
from planner.cli.explain import explain_file
from planner.cli.rollouts import Kubeconfig, Namespace, Records, Show
from planner.errors import BadInputError

if TYPE_CHECKING:
    from planner.deployments.plans import ClusterPlans
    from planner.execution.observation import Observation
    from planner.execution.ports import StoredPlan
    from planner.execution.reconcile import Ports, ReconcileResult


class DryRun(StrEnum):
    """The side that checks a plan that is not to be carried out."""

    CLIENT = "client"
    SERVER = "server"


DRY_RUN = "--dry-run"


def with_dry_run_mode(arguments: Sequence[str]) -> list[str]:
    """Return the command line in which every ``--dry-run`` of ``planner apply`` has a mode: client where none is named.

    Typer has no options that go with a value as well as without one. A word that follows and is neither an option nor
    a plan file is meant for the mode, so that a wrong one is reported as such.
    """
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    for index, word in enumerate(words[:end]):
        if words[0] == "apply" and word == DRY_RUN and not _is_mode_next(words[index + 1 : end]):
            words[index] = f"{DRY_RUN}={DryRun.CLIENT}"
    return words


def _is_mode_next(words: Sequence[str]) -> bool:
    """Return whether a mode comes next, or a word that could mean nothing else."""
    if not words or words[0].startswith("-"):
        return False
    return words[0] in tuple(DryRun) or not rollouts.is_plan_file(words[0])


def _mode(dry_run: str | None) -> DryRun | None:
    if dry_run is None:
        return None
    if dry_run not in tuple(DryRun):
        raise BadInputError(f"option {DRY_RUN}: found {dry_run!r}, expected client or server")
    return DryRun(dry_run)


def apply(
    plan: Annotated[Path, typer.Argument(help="Approved plan file of planner plan.", show_default=False)],
    dry_run: Annotated[
        str | None,
        typer.Option(
            DRY_RUN,
            metavar="[client|server]",
            help="Change nothing: client, also meant without a mode, only reads the file; server asks the cluster "
            "whether it fits.",
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show steps, pods and members as a live tree; wait for an approval.")
    ] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    policy: Annotated[
        Path | None,
        typer.Option("--policy", "-p", help="Policy file, or folder of policies; default: the objects in the cluster."),
    ] = None,
    data: Records = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Carry out an approved plan, or follow the controller that does.

    Progress stands in the plan's status: applying it again goes on where it stopped. Exit code 1 when it was
    refused, rolled back or is stuck.
    """
    mode = _mode(dry_run)
    document = rollouts.read_plan_file(plan)
    with answering(form, output) as answer:
        if mode is DryRun.CLIENT:
            explain_file(plan, answer)
        else:
            _apply(document, mode, watch, answer, namespace, kubeconfig, policy, data)


def _apply(
    document: dict[str, Any],
    mode: DryRun | None,
    watch: bool,
    answer: Answer,
    namespace: str | None,
    kubeconfig: Path | None,
    policy: Path | None,
    data: Path | None,
) -> None:
    plan_namespace = namespace or document["metadata"].get("namespace", "default")
    with rollouts.open_cluster(kubeconfig) as api:
        from planner.approval.handover import submit
        from planner.deployments.drive import open_ports
        from planner.deployments.plans import ClusterPlans
        from planner.deployments.rights import check_rights

        ports = open_ports(api, plan_namespace, rollouts.live_groups(), rollouts.policies(api, plan_namespace, policy))
        plans = ClusterPlans(api, plan_namespace)
        stored = submit(plans, document, is_dry=mode is DryRun.SERVER)
        check_rights(api, plan_namespace, stored.plan)
        if mode is DryRun.SERVER and _is_untouched(stored):
            _try(ports, stored, answer)
            return
        if mode is DryRun.SERVER:
            _finish(stored, plan_namespace, answer)
            return
        stored = _carry_out(ports, plans, stored, watch, answer)
        rollouts.keep_record(data, stored)
        _finish(stored, plan_namespace, answer)


def _carry_out(
    ports: "Ports", plans: "ClusterPlans", stored: "StoredPlan", watch: bool, answer: Answer
) -> "StoredPlan":
    if stored.status.phase.is_final:
        _remove_finalizer(plans, stored)  # the executor that ended it may have been killed before that
        return stored  # to apply it again does nothing else
    try:
        with shown(watch and answer.is_text) as show:
            stored = rollouts.follow(ports, stored, show, waits_for_approval=watch)
    finally:
        _remove_finalizer(plans, stored)
    return stored


def _remove_finalizer(plans: "ClusterPlans", stored: "StoredPlan") -> None:
    """Let the plan be deleted where nothing is left to undo; while it is in progress it must not go."""
    from planner.errors import OutOfReachError

    try:
        current = plans.read(stored.name)
        if current is not None and (current.status.phase.is_final or not current.status.phase.is_in_progress):
            plans.remove_finalizer(current)
    except OutOfReachError as error:
        errors.print(f"planner: the plan's finalizer stays: {error}")


def _is_untouched(stored: "StoredPlan") -> bool:
    from planner.execution.phases import Phase

    return stored.status.phase in (Phase.PENDING, Phase.APPROVED)


def _try(ports: "Ports", stored: "StoredPlan", answer: Answer) -> None:
    """Print whether the plan fits the cluster as it is now; nothing is changed."""
    from planner.execution.drift import before_start
    from planner.execution.moves import Reconcile

    now = ports.clock()
    observation = ports.cluster.observe(stored, now)
    drift = before_start(Reconcile(stored, observation, now))
    reasons = [f"{refusal.code}: {refusal.sentence}" for refusal in drift.refusals]
    if not answer.is_text:
        fits = not (reasons or drift.unknowns)
        answer.write("RolloutFit", {"fits": fits, "refusals": reasons, "unknown": list(drift.unknowns)})
    else:
        _print_fit(stored, reasons, [*drift.unknowns, *observation.problems])
    if reasons or drift.unknowns:
        raise typer.Exit(1)


def _print_fit(stored: "StoredPlan", reasons: list[str], unknowns: list[str]) -> None:
    console = text_console()
    for reason in reasons:
        console.print(f"refused: {reason}", style="red", soft_wrap=True)
    for unknown in unknowns:
        console.print(f"unknown: {unknown}", style="yellow", soft_wrap=True)
    if not reasons and not unknowns:
        console.print(f"Plan {stored.name} fits the cluster; nothing was changed. Its steps:")
        for number, step in enumerate(stored.plan.steps, start=1):
            console.print(f"  {number}. {step.action}", soft_wrap=True)


def _finish(stored: "StoredPlan", namespace: str, answer: Answer) -> None:
    from planner.execution.phases import Phase

    if answer.is_text:
        rollouts.print_end(stored)
    else:
        answer.write(rollouts.PROGRESS, rollouts.answer(stored, namespace))
    if stored.status.phase is Phase.PENDING and (lacking := _lacking(stored, namespace)) is not None:
        errors.print(
            f"planner: plan {stored.name} is in the cluster, nothing was changed: {lacking}, then apply it again",
        )
    if stored.status.phase is not Phase.SUCCEEDED:
        raise typer.Exit(1)


def _lacking(stored: "StoredPlan", namespace: str) -> str | None:
    """Return the command that gives a plan what it waits for, ``None`` where approval and phrases are there."""
    from planner.documents.approve import APPROVE_ANNOTATION

    phrases, given = stored.plan.confirmations, stored.requests.approval
    if any(phrase not in stored.requests.confirmed for phrase in phrases):
        options = " ".join(f"--confirm {shlex.quote(phrase)}" for phrase in dict.fromkeys(phrases))
        return f"planner approve {stored.name} --namespace {namespace} {options}"
    if given is None or given.digest != stored.digest:
        over = "" if given is None else " --overwrite"
        return f"kubectl annotate crp {stored.name} -n {namespace}{over} {APPROVE_ANNOTATION}={stored.digest}"
    return None


@contextmanager
def shown(as_tree: bool) -> Iterator[Show]:
    """Give the function that shows progress: a live tree, or one line on standard error for each thing that happens."""
    if as_tree:
        with _tree() as show:
            yield show
        return
    last = ""

    def line(stored: "StoredPlan", _: "Observation | None", turned: "ReconcileResult") -> None:
        nonlocal last
        from planner.execution.reconcile import Outcome

        moves = (Outcome.MOVED, Outcome.DONE)
        sentence = (stored.status.held or stored.status.message) if turned.outcome in moves else turned.why
        if sentence != last:
            errors.print(f"{stored.status.phase}: {sentence}")
            last = sentence

    yield line


@contextmanager
def _tree() -> Iterator[Show]:
    from rich.live import Live

    from planner.cli.tree import plan_tree

    with Live(console=text_console(), auto_refresh=False) as live:
        yield lambda stored, observation, _: live.update(plan_tree(stored, observation), refresh=True)
