"""``planner-controller``: its options, its tasks, and its end."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from planner.controller.process import run
from planner.controller.settings import (
    EVERYWHERE,
    HEALTH_PORT,
    LEASE,
    METRICS_PORT,
    WORKERS,
    LogFormat,
    LogLevel,
    Settings,
    choose_lease_namespace,
    chosen_accounts,
    chosen_namespaces,
)
from planner.documents.tenant_files import FileRules
from planner.errors import PlannerError
from planner.storage.layout import local_folder
from planner.text.printable import one_line

app = typer.Typer(
    name="planner-controller",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "PLANNER"},
)


@app.command()
def controller(
    namespace: Annotated[
        list[str] | None, typer.Option(help="Namespaces whose plans are carried out, with commas.", show_default=False)
    ] = None,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", help="Carry out the plans of all.")] = False,
    leader_lease: Annotated[str, typer.Option(help="The lease that its replicas share.")] = LEASE,
    leader_namespace: Annotated[
        str | None, typer.Option(help="Where that lease is; default: the pod's own, or the first that is watched.")
    ] = None,
    listen_address: Annotated[
        str, typer.Option(help="Where both ports are opened, for example the pod's own address.")
    ] = EVERYWHERE,
    health_port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of /healthz and /readyz.")] = HEALTH_PORT,
    metrics_port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of /metrics.")] = METRICS_PORT,
    log_format: Annotated[LogFormat, typer.Option(help="How a line of the log looks.")] = LogFormat.JSON,
    log_level: Annotated[LogLevel, typer.Option(help="The least that is logged.")] = LogLevel.INFO,
    workers: Annotated[int, typer.Option(min=1, max=64, help="How many plans have their turn at once.")] = WORKERS,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="kubeconfig file; default: the pod's service account, or kubectl's own.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Data folder: how forecasts did is kept below it, in calibration/.", show_default=False),
    ] = None,
    planning_account: Annotated[
        list[str] | None,
        typer.Option(
            help="Accounts whose plans the criteria of policies may approve, with commas: "
            "system:serviceaccount:NAMESPACE:NAME. Without one every plan is for a person.",
            show_default=False,
        ),
    ] = None,
    finished_plans: Annotated[
        int, typer.Option(min=0, help="Plans of a policy that have ended and stay, the newest; 0 sets no limit.")
    ] = 0,
) -> None:
    """Carry out the approved plans of a cluster until told to end.

    Exit codes: 0 told to end, 1 told to end and something hung, 2 bad options, a port that is taken or a data folder
    that cannot be written. What is out of reach never ends it.
    """
    FileRules.of_environment()  # rules that cannot be read end it now, and not with the first plan
    namespaces = chosen_namespaces(namespace or (), all_namespaces)
    for name, path in (("--data", data), ("--kubeconfig", kubeconfig)):
        local_folder(str(path or ""), name)
    settings = Settings(
        namespaces=namespaces,
        lease_name=leader_lease,
        lease_namespace=choose_lease_namespace(leader_namespace, namespaces),
        listen_address=listen_address,
        health_port=health_port,
        metrics_port=metrics_port,
        log_format=log_format,
        log_level=log_level,
        workers=workers,
        kubeconfig=kubeconfig,
        data=data,
        planning_accounts=chosen_accounts(planning_account or ()),
        finished_plans=finished_plans or None,
    )
    run(settings)


def main() -> None:
    """Run the controller; a ``PlannerError`` ends as one sentence on standard error and its own exit code."""
    try:
        app()
    except PlannerError as error:
        print(f"planner-controller: {one_line(str(error))}", file=sys.stderr)  # noqa: T201 - the log may not be set up yet
        sys.exit(error.exit_code)
