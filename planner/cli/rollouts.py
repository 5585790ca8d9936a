"""What the commands that carry plans out share: the cluster, following a plan, printing how it stands."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.console import errors, print_next, text_console
from planner.errors import BadInputError, OutOfReachError
from planner.text.words import duration

if TYPE_CHECKING:
    from planner.deployments.api import RolloutApi
    from planner.deployments.cluster_state import Policies
    from planner.deployments.groups import Groups
    from planner.execution.observation import Observation
    from planner.execution.ports import StoredPlan
    from planner.execution.reconcile import Ports, ReconcileResult

PROGRESS = "RolloutProgress"
"""Kind of the document that says where a plan stands."""

PATIENCE_S = 300.0
"""How long nothing may answer before a command gives up; the plan stays where it is."""

Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", help="Namespace of the plan; default: the file's, or default.", show_default=False
    ),
]
Kubeconfig = Annotated[
    Path | None, typer.Option(help="kubeconfig file; default: the pod's service account, or kubectl's own.")
]
Records = Annotated[
    Path | None,
    typer.Option(help="Data folder: how the forecast did is kept below it, in calibration/, for the next forecast."),
]
PlanName = Annotated[str, typer.Argument(help="Name of a plan in the cluster, or its file.", show_default=False)]
Show = Callable[["StoredPlan", "Observation | None", "ReconcileResult"], None]


@contextmanager
def open_cluster(kubeconfig: Path | None) -> "Iterator[RolloutApi]":
    """Give the API server that the options name."""
    from planner.deployments.api import RolloutApi

    with RolloutApi.connect(kubeconfig) as api:
        yield api


def live_groups() -> "Groups":
    """Return where observations of groups come from: their brokers."""
    from planner.deployments.groups import LiveGroups

    return LiveGroups()


def policies(api: "RolloutApi", namespace: str, file: Path | None) -> "Policies":
    """Return the reader of policies: the file or folder where one is named, else the namespace's objects.

    A plan for pods that serve several groups needs the policies of all: those of a folder, or the objects.
    """
    from planner.deployments.policies import cluster_policies
    from planner.documents.policy import read_policy
    from planner.documents.policy_folder import read_policies

    if file is None:
        return cluster_policies(api, namespace)
    if file.is_dir():
        read_policies(file)  # one that is wrong is reported at once
        return lambda name: next((each for each in read_policies(file) if each.metadata.name == name), None)
    read_policy(file)  # a file that is wrong is reported at once
    return lambda name: parsed if (parsed := read_policy(file)).metadata.name == name else None


def is_plan_file(plan: str) -> bool:
    """Return whether a word that names a plan means its file: it looks like a path, or there is such a file."""
    return plan.endswith((".yaml", ".yml")) or "/" in plan or Path(plan).is_file()


def locate_plan(plan: str, namespace: str | None) -> tuple[str, str]:
    """Return namespace and name of a plan by its name or its file."""
    if not is_plan_file(plan):
        return namespace or "default", plan
    metadata = read_plan_file(Path(plan))["metadata"]
    return namespace or metadata.get("namespace", "default"), str(metadata["name"])


def read_plan_file(path: Path) -> dict[str, Any]:
    """Return a plan file's document. Raises ``BadInputError`` for what is no plan, or is a hold."""
    from planner.documents.plan import PLAN, read_document, read_plan_or_decision
    from planner.rollout.plan import RolloutPlan

    if not isinstance(read_plan_or_decision(path), RolloutPlan):
        raise BadInputError(f"{path} is a decision to hold: there is nothing to apply")
    document = read_document(path)
    if not isinstance(document["metadata"].get("name"), str):
        raise BadInputError(f"{path}: field metadata.name is missing: a {PLAN.kind} needs one in a cluster")
    return document


def read_plan(ports: "Ports", namespace: str, name: str) -> "StoredPlan":
    """Return a plan of the cluster. Raises ``BadInputError`` when there is none."""
    from planner.deployments.plans import no_plan

    stored = ports.plans.read(name)
    if stored is None:
        raise no_plan(namespace, name)
    return stored


def follow(ports: "Ports", stored: "StoredPlan", show: Show, *, waits_for_approval: bool) -> "StoredPlan":
    """Drive a plan, or follow its executor, until it is at its end; return it as it is then.

    Without ``waits_for_approval`` it ends there, too, where nobody has approved it. Ctrl-C leaves the plan where it is,
    says so and ends with exit code 1. Raises ``OutOfReachError`` when nothing answers for ``PATIENCE_S`` seconds.
    """
    from planner.deployments.drive import executor_name, give_back

    executor, last = executor_name(), stored

    def shown(current: "StoredPlan", observation: "Observation | None", turned: "ReconcileResult") -> None:
        nonlocal last
        last = current
        show(current, observation, turned)

    try:
        with _ctrl_c() as stop:
            return _to_the_end(ports, stored, shown, executor, waits_for_approval, stop)
    except KeyboardInterrupt:
        give_back(ports, stored, executor)
        errors.print(f"planner: {_describe_open(last)}")
        raise typer.Exit(1) from None


def _describe_open(stored: "StoredPlan") -> str:
    """Return what becomes of a plan that nobody carries on here: what was asked of it stays asked."""
    from planner.execution.phases import Phase

    stays = f"plan {stored.name} stays where it is"
    if stored.requests.abort or stored.requests.is_deleted:
        return f"{stays} and its abort stays asked for: planner abort goes on with that, and so does a controller"
    if stored.status.phase is Phase.ABORTING:
        return f"{stays}, on its way back: planner apply or planner abort goes on undoing it"
    return f"{stays}: planner apply goes on with it, planner abort undoes it"


@contextmanager
def _ctrl_c() -> Iterator[threading.Event]:
    """Give what Ctrl-C sets: the current reconcile is finished first, no request is cut. A second one ends at once."""
    stop = threading.Event()

    def ask(*_: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread gets signals
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def _to_the_end(
    ports: "Ports", stored: "StoredPlan", show: Show, executor: str, waits_for_approval: bool, stop: threading.Event
) -> "StoredPlan":
    from planner.deployments.drive import drive
    from planner.execution.phases import Phase
    from planner.execution.reconcile import Outcome

    answered_at = time.monotonic()
    for turned in drive(ports, stored.name, executor, sleep=stop.wait):
        if turned.outcome is Outcome.GONE:
            break
        if turned.outcome is not Outcome.RETRY:
            answered_at = time.monotonic()
        elif time.monotonic() - answered_at > PATIENCE_S:
            raise OutOfReachError(f"plan {stored.name} got no further for {duration(PATIENCE_S)}: {turned.why}")
        stored = _fresh(ports, stored)
        show(stored, getattr(ports.cluster, "last", None), turned)
        if stop.is_set() and not stored.status.phase.is_final:
            raise KeyboardInterrupt
        if stored.status.phase is Phase.PENDING and turned.outcome is Outcome.WAITING and not waits_for_approval:
            break
    return stored


def _fresh(ports: "Ports", stored: "StoredPlan") -> "StoredPlan":
    try:
        return ports.plans.read(stored.name) or stored
    except OutOfReachError:
        return stored  # the next reconcile reports it


def keep_record(data: Path | None, stored: "StoredPlan") -> None:
    """Write how the plan's forecast did below the data folder; nothing without a folder or a verdict."""
    from planner.storage.track_records import land_records

    verdict = stored.status.verdict
    if data is not None and verdict is not None and verdict.figures:
        for path in land_records(data, stored.plan, verdict):
            errors.print(f"planner: how the forecast did is kept in {path}", soft_wrap=True)


def answer(stored: "StoredPlan", namespace: str) -> dict[str, Any]:
    """Return where a plan stands, for machines."""
    from planner.documents.status import dump_status

    return {
        "plan": stored.name,
        "namespace": namespace,
        "digest": stored.digest,
        "steps": len(stored.plan.steps),
        "status": dump_status(stored.status),
    }


def print_next_step(stored: "StoredPlan", namespace: str) -> None:
    """Print the command that goes on with a plan; nothing for one that has ended."""
    from planner.execution.phases import Phase

    status, where = stored.status, f"{stored.name} --namespace {namespace}"
    if status.phase is Phase.PENDING:
        print_next(f"planner approve {where}")
    elif status.phase is Phase.STUCK:
        print_next(f"planner abort {where}")
    elif status.phase is Phase.SUCCEEDED:
        print_next(f"planner verify {where}")


def print_end(stored: "StoredPlan") -> None:
    """Print in text how a plan stands."""
    from planner.execution.phases import Phase

    status, console = stored.status, text_console()
    style = {Phase.SUCCEEDED: "bold green", Phase.STUCK: "bold red"}.get(status.phase, "bold")
    console.print(f"Plan {stored.name}: {status.phase}", style=style)
    console.print(status.held or status.message, soft_wrap=True)
    for surprise in status.surprises:
        console.print(f"  otherwise than planned: {surprise}", style="yellow", soft_wrap=True)
    for sentence in status.verdict.sentences if status.verdict else ():
        console.print(f"  {sentence}", soft_wrap=True)
