"""``planner advise``: an address is enough; watch until the answer is clear, then one decision and the next command."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.advice.sequential import LONGEST_S
from planner.cli.address import (
    Address,
    CaFileOption,
    ClusterOption,
    CredentialsOption,
    DeploymentOption,
    Discovery,
    KafkaOption,
    KubeconfigOption,
    NameServerOption,
    TlsOption,
    discover,
    workload_of,
)
from planner.cli.console import Format, FormatOption, errors, print_json, text_console
from planner.errors import BadInputError, OutOfReachError

if TYPE_CHECKING:
    from planner.advice.answer import Advice
    from planner.cli.concluding import Conclusion
    from planner.cli.target import Target
    from planner.documents.policy import ConsumerScalingPolicy


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for; ``group`` ``None`` is every group, ``deployment`` is namespace and name."""

    address: Address
    group: str | None
    deployment: tuple[str, str] | None
    kubeconfig: Path | None
    highest: int | None
    longest_s: float
    members_per_pod: int | None = None


def advise(
    group: Annotated[str | None, typer.Option("--group", "-g", help="The consumer group.", show_default=False)] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every group of the installation as one table, largest gain first.")
    ] = False,
    name_server: NameServerOption = None,
    kafka: KafkaOption = None,
    deployment: DeploymentOption = None,
    highest: Annotated[
        int | None,
        typer.Option(
            "--max",
            min=1,
            max=10_000,
            help="Consumers at most.",
            show_default="one a queue, at most 10 times the present ones or 20",
        ),
    ] = None,
    members_per_pod: Annotated[
        int | None,
        typer.Option(
            "--members-per-pod",
            min=1,
            max=64,
            help="Members that each pod runs, where they share addresses and no --deployment tells.",
            show_default=False,
        ),
    ] = None,
    at_most: Annotated[
        int,
        typer.Option("--at-most", min=10, max=3600, help="Seconds to watch at most; a clear answer ends it before."),
    ] = int(LONGEST_S),
    cluster: ClusterOption = None,
    kubeconfig: KubeconfigOption = None,
    credentials: CredentialsOption = None,
    tls: TlsOption = False,
    ca_file: CaFileOption = None,
    snapshot: Annotated[
        Path | None, typer.Option(help="Keep what was watched, for planner plan.", show_default=False)
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with pictures, too.", show_default=False)] = None,
    form: FormatOption = None,
) -> None:
    """Watch a group until the answer is clear, and say how many consumers it needs. No policy file; only reads.

    Ten minutes at most, mostly one or two. Exit code 0: an answer, which a hold is, too; 2 bad input; 3 out of reach.

    planner advise --kafka 10.0.0.5:9092 --group shop-payments --deployment shop/payments

    planner advise -n 10.0.0.5:9876 --all
    """
    address = Address(name_server, kafka, cluster, credentials, tls, ca_file)
    address.check("advise")
    _check(group, deployment, kubeconfig, snapshot, everything=everything)
    if everything and members_per_pod is not None:
        raise BadInputError("planner advise: --members-per-pod belongs to one group: name it with --group")
    workload = workload_of(deployment, "advise")
    _check_page(html)
    conclusions, unread = answers(
        Request(address, group, workload, kubeconfig, highest, float(at_most), members_per_pod)
    )
    _write_files(conclusions, unread, snapshot, html, is_table=everything)
    _print(conclusions, unread, form or Format.TEXT, is_table=everything)
    if unread:
        raise typer.Exit(OutOfReachError.exit_code)


def _check(
    group: str | None, deployment: str | None, kubeconfig: Path | None, snapshot: Path | None, *, everything: bool
) -> None:
    if everything == (group is not None):
        raise BadInputError("planner advise: it goes with either --group NAME or --all: say one of them")
    if everything and (deployment or snapshot):
        raise BadInputError("planner advise: --deployment and --snapshot belong to one group: name it with --group")
    if kubeconfig is not None and deployment is None:
        raise BadInputError("planner advise: --kubeconfig needs --deployment NAMESPACE/NAME")
    if snapshot is not None and snapshot.is_dir():
        raise BadInputError(
            f"--snapshot {snapshot} is a folder, expected a file: {snapshot / 'snap.json'}, for example"
        )


def _check_page(html: Path | None) -> None:
    """Raise what keeps the page from being written, before anybody waits for the watch."""
    if html is None:
        return
    from planner.report.doctor import check_page

    check_page(html)


def answers(request: Request) -> "tuple[list[Conclusion], list[tuple[str, str]]]":
    """Return the answers, largest gain first, and the groups that could not be read, each with the reason."""
    from planner.advice.answer import by_gain
    from planner.cli.advise_view import WatchView
    from planner.cli.concluding import conclude
    from planner.cli.watching import single_installation, watch_until_clear

    names = (request.group,) if request.group else ()
    with errors.status("reading the group" if names else "asking which groups there are"):
        discovery = discover(request.address, names)
        target = _target(request, discovery)
        policies = _policies(request, discovery, target)
    with WatchView(errors, request.longest_s) as view:
        watch = watch_until_clear(single_installation(policies), request.longest_s, view.show)
    with errors.status("working out what the change costs"):
        conclusions = [
            conclude(group, watch.pace.sample_every_s, request.address, target)
            for group in watch.groups.values()
            if group.samples
        ]
    failures = discovery.failures | {
        name: group.failure for name, group in watch.groups.items() if group.failure is not None and not group.samples
    }
    unread = [(name, str(failure)) for name, failure in sorted(failures.items())]
    return sorted(conclusions, key=lambda conclusion: by_gain(conclusion.advice)), unread


def _target(request: Request, discovery: Discovery) -> "Target | None":
    """Return the Deployment that is named, read before anybody waits, and print what does not fit."""
    if request.deployment is None or request.group is None:
        return None
    from planner.cli.target import doubts, read_target

    sample = discovery.samples[request.group]
    target = read_target(*request.deployment, request.kubeconfig, sample)
    for doubt in doubts(target, sample):
        errors.print(f"planner: {doubt}")
    return target


def _policies(request: Request, discovery: Discovery, target: "Target | None") -> "list[ConsumerScalingPolicy]":
    from planner.cli.default_policy import default_policy

    return [
        default_policy(request.address, sample, target, request.highest, request.members_per_pod)
        for _, sample in sorted(discovery.samples.items())
    ]


def _write_files(
    conclusions: "Sequence[Conclusion]",
    unread: Sequence[tuple[str, str]],
    snapshot: Path | None,
    html: Path | None,
    *,
    is_table: bool,
) -> None:
    from planner.documents.data import SNAPSHOT
    from planner.storage.files import write_atomically

    if snapshot is not None:
        write_atomically(snapshot, SNAPSHOT.dump(conclusions[0].snapshot))
        errors.print(f"planner: snapshot written to {snapshot}")
    if html is None:
        return
    from planner.report.advice import write_advice_page

    if is_table:
        write_advice_page(html, [conclusion.advice for conclusion in conclusions], unread)
    else:
        _write_case(html, conclusions[0])
    errors.print(f"planner: page written to {html}")


def _write_case(html: Path, conclusion: "Conclusion") -> None:
    from planner.report.write import write_report

    # The policy in memory needs a name for the Deployment; a page must not show one that nobody stated.
    known = conclusion.advice.deployment is not None
    write_report(
        html,
        conclusion.snapshot,
        conclusion.outcomes,
        conclusion.record if known else replace(conclusion.record, deployment="unknown"),
        conclusion.plan,
        max_utilisation=conclusion.policy.objective.stated_utilisation,
        advice=conclusion.advice,
    )


def _print(
    conclusions: "Sequence[Conclusion]", unread: Sequence[tuple[str, str]], form: Format, *, is_table: bool
) -> None:
    from planner.cli.advise_view import print_advice, print_advices

    advices = [conclusion.advice for conclusion in conclusions]
    if form is not Format.TEXT:
        _print_document(_list_document(advices, unread) if is_table else document(advices[0]), form)
    elif is_table:
        print_advices(text_console(), advices, unread)
    else:
        print_advice(text_console(), advices[0], conclusions[0].policy)


def document(advice: "Advice") -> dict[str, Any]:
    """Return the fixed short form under ``apiVersion`` and ``kind``."""
    from planner.advice.answer import short_form
    from planner.documents.format import API_VERSION

    return {"apiVersion": API_VERSION, "kind": "Advice", **short_form(advice)}


def _list_document(advices: "Sequence[Advice]", unread: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the short forms, each beside the group that it is about, and the groups that could not be read."""
    from planner.advice.answer import short_form
    from planner.documents.format import API_VERSION

    items = [
        {"group": advice.group, "system": advice.system, "cluster": advice.cluster, **short_form(advice)}
        for advice in advices
    ]
    failures = [{"group": group, "reason": reason} for group, reason in unread]
    return {"apiVersion": API_VERSION, "kind": "AdviceList", "items": items, "unread": failures}


def _print_document(value: dict[str, Any], form: Format) -> None:
    if form is Format.JSON:
        print_json(value)
        return
    from planner.documents.yaml import dump_yaml

    typer.echo(dump_yaml(value), nl=False)
