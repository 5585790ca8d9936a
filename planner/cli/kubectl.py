"""``kubectl planner``: plans in the cluster, for whoever has kubectl at hand; it finds us as ``kubectl-planner``."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from planner.cli import abort as aborting
from planner.cli import approve as approving
from planner.cli import rollouts, status
from planner.cli.console import Answer, Format, FormatOption, errors, print_explanation, print_help_alone, text_console
from planner.cli.main import end_with_exit_code
from planner.cli.rollouts import Kubeconfig
from planner.errors import BadInputError
from planner.text.printable import one_line

if TYPE_CHECKING:
    from planner.deployments.api import RolloutApi
    from planner.execution.ports import StoredPlan

POLL_S: Final = 2.0

app = typer.Typer(
    name="kubectl planner",
    help="Rollout plans of message consumers: where they stand, approve, pause, abort.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Name = Annotated[str, typer.Argument(help="Name of the plan.", show_default=False)]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace of the plans.", show_default="the current context's"),
]


@app.callback()
def _options(context: typer.Context) -> None:
    """Rollout plans of message consumers. Exit codes are those of planner: 0, 1, 2, 3."""
    print_help_alone(context)


@app.command()
def get(
    name: Annotated[str | None, typer.Argument(help="One plan with its steps; default: all of them.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on, and print a line at each change.")] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    form: FormatOption = None,
) -> None:
    """Say where plans stand."""
    if watch and form not in (None, Format.TEXT):
        raise BadInputError(f"--watch prints lines, and --format {form} asks for one document: leave one of them out")
    plan_namespace, answer = _namespace(namespace, kubeconfig), Answer(form or Format.TEXT)
    with rollouts.open_cluster(kubeconfig) as api:
        if watch:
            _watch(api, plan_namespace, name)
        elif name is None:
            status.list_all(api, plan_namespace, answer)
        else:
            status.show(status.read_plan(api, plan_namespace, name), plan_namespace, answer)


@app.command()
def approve(name: Name, namespace: Namespace = None, kubeconfig: Kubeconfig = None) -> None:
    """Show a plan, ask, and approve exactly what was shown; planner approve does it without a question.

    Exit code 1 where the answer is no.
    """
    from planner.rollout.explain import explain_plan

    plan_namespace = _namespace(namespace, kubeconfig)
    with rollouts.open_cluster(kubeconfig) as api:
        shown = status.read_plan(api, plan_namespace, name)
        # Before anybody reads and types: a plan that is over is refused at once.
        approving.check_open(api, shown, None, shown.plan.confirmations)
    print_explanation(explain_plan(shown.plan, is_short=True))
    phrases = [_phrase(phrase) for phrase in shown.plan.confirmations]
    _ask(f"Approve plan {name} with digest {shown.digest}?")
    made, answer = approving.approve_in_cluster(name, plan_namespace, kubeconfig, shown.digest, phrases)
    approving.print_approval(name, made, answer)


@app.command()
def pause(name: Name, namespace: Namespace = None, kubeconfig: Kubeconfig = None) -> None:
    """Have a plan wait after the step that goes on; resume lets it go on."""
    _annotate_pause(name, namespace, kubeconfig, "pause")
    text_console().print(f"Plan {name} is asked to pause; kubectl planner resume lets it go on.", soft_wrap=True)


@app.command()
def resume(name: Name, namespace: Namespace = None, kubeconfig: Kubeconfig = None) -> None:
    """Let a plan that is paused go on."""
    _annotate_pause(name, namespace, kubeconfig, "resume")
    text_console().print(f"Plan {name} may go on.", soft_wrap=True)


@app.command()
def abort(name: Name, namespace: Namespace = None, kubeconfig: Kubeconfig = None) -> None:
    """Ask, and have the executor undo a plan, which is the controller as a rule.

    Exit code 1 where the answer is no. A plan that has ended already is exit code 2.
    """
    plan_namespace = _namespace(namespace, kubeconfig)
    with rollouts.open_cluster(kubeconfig) as api:
        stored = status.read_plan(api, plan_namespace, name)
    if stored.status.phase.is_final:
        raise BadInputError(f"plan {name} has ended as {stored.status.phase}: there is nothing to undo")
    status.show(stored, plan_namespace, Answer(Format.TEXT))
    _ask(f"Undo what plan {name} has done, and end it?")
    stored, _ = aborting.abort_plan(name, plan_namespace, kubeconfig, None, False)
    if stored.status.phase.is_final:
        rollouts.print_end(stored)
        return
    asked = f"Plan {name} is asked to undo what it has done; kubectl planner get {name} -w shows how far it is."
    text_console().print(asked, soft_wrap=True)


@app.command()
def history(namespace: Namespace = None, kubeconfig: Kubeconfig = None, form: FormatOption = None) -> None:
    """List plans that have ended, the newest first: how each ended, and how its forecast did."""
    plan_namespace, answer = _namespace(namespace, kubeconfig), Answer(form or Format.TEXT)
    with rollouts.open_cluster(kubeconfig) as api:
        plans, unreadable = status.readable(api.plans(plan_namespace))
    ended = sorted((plan for plan in plans if plan.status.phase.is_final), key=_ended_at, reverse=True)
    if not answer.is_text:
        answer.write("RolloutHistory", [rollouts.answer(stored, plan_namespace) for stored in ended])
    elif not ended:
        text_console().print(f"No plan of namespace {plan_namespace} has ended.")
    else:
        for stored in ended:
            text_console().print(_describe_end(stored), soft_wrap=True)
    for error in unreadable:
        errors.print(f"not shown: {error}")


def _namespace(named: str | None, kubeconfig: Path | None) -> str:
    from planner.sources.kubernetes import own_namespace

    return named or own_namespace(kubeconfig)


def _watch(api: "RolloutApi", namespace: str, name: str | None) -> None:
    """Print a line for each plan, and another at each of its changes, until Ctrl-C or until the named one has ended."""
    if name is not None:
        status.read_plan(api, namespace, name)
    last_lines: dict[str, str] = {}
    while True:
        plans, _ = status.readable(api.plans(namespace))
        watched = [stored for stored in plans if name in (None, stored.name)]
        for line in _news(watched, last_lines):
            text_console().print(line, soft_wrap=True)
        if name is not None and all(stored.status.phase.is_final for stored in watched):
            return
        time.sleep(POLL_S)


def _news(plans: "Iterable[StoredPlan]", last_lines: dict[str, str]) -> Iterator[str]:
    """Yield the lines that were not printed yet; ``last_lines`` keeps the last one of each plan."""
    for stored in plans:
        line = status.line_of(stored)
        if last_lines.get(stored.key) != line:
            last_lines[stored.key] = line
            yield line


def _ask(question: str) -> None:
    """End with exit code 1 unless somebody says yes: neither a pipe nor an empty line does."""
    if not typer.confirm(one_line(question)):
        errors.print("planner: nothing was done")
        raise typer.Exit(1)


def _phrase(phrase: str) -> str:
    """Return what was typed for a phrase of the plan; a wrong word is refused with the approval."""
    answer: str = typer.prompt(one_line(f"It sets offsets. Type: {phrase}"))
    return answer


def _annotate_pause(name: str, namespace: str | None, kubeconfig: Path | None, verb: str) -> None:
    from planner.deployments.plans import PAUSE_ANNOTATION, ClusterPlans

    plan_namespace = _namespace(namespace, kubeconfig)
    with rollouts.open_cluster(kubeconfig) as api:
        stored = status.read_plan(api, plan_namespace, name)
        if stored.status.phase.is_final:
            raise BadInputError(f"plan {name} has ended as {stored.status.phase}: there is nothing to {verb}")
        ClusterPlans(api, plan_namespace).annotate(name, {PAUSE_ANNOTATION: "true" if verb == "pause" else None})


def _ended_at(stored: "StoredPlan") -> Any:
    return stored.status.phase_since or stored.plan.made_at


def _describe_end(stored: "StoredPlan") -> str:
    from planner.verification.verdict import Fit

    plan, verdict = stored.plan, stored.status.verdict
    change = plan.migration or f"{plan.preconditions.replicas} -> {plan.final_replicas}"
    missed = [figure.name for figure in verdict.figures if figure.fit is Fit.OUTSIDE] if verdict else []
    forecast = "no forecast was judged" if verdict is None else f"missed: {', '.join(missed)}" if missed else "no miss"
    when = f"{_ended_at(stored):%Y-%m-%d %H:%M:%S %Z}"
    return f"{when}  {stored.name}  {plan.group.group}  {change}  {stored.status.phase}  {forecast}"


def main() -> None:
    """Run the plugin; errors are one sentence and an exit code, as the planner's own are."""
    end_with_exit_code(lambda: app(prog_name="kubectl planner"))


if __name__ == "__main__":
    main()
