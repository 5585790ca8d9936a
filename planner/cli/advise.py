"""``planner advise``: an address is enough; watch until the answer is clear, then one decision and the next command."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.advice.counting import MOST_MEMBERS
from planner.advice.sequential import LONGEST_S
from planner.cli.address import (
    Address,
    CaFileOption,
    ClusterOption,
    CredentialsOption,
    DeploymentOption,
    KafkaOption,
    KubeconfigOption,
    NameServerOption,
    ProxyOption,
    TlsOption,
    workload_of,
)
from planner.cli.advice_output import print_conclusions, write_files
from planner.cli.advising import Request, answers
from planner.cli.console import Format, FormatOption, Output, answering, check_output
from planner.cli.metric_reading import (
    BasicAuthOption,
    BearerOption,
    LabelOption,
    MatchOption,
    PastStepOption,
    QueuesEachOption,
    SystemOption,
)
from planner.cli.past_advice import STEP_S, past_request
from planner.cli.plays import DEFAULT_JOBS, DEFAULT_JOBS_WORDS, MOST_JOBS
from planner.cli.stated_capacity import CapacityOption, capacities
from planner.errors import BadInputError, OutOfReachError

if TYPE_CHECKING:
    from planner.cli.past_advice import PastRequest


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
            max=MOST_MEMBERS,
            help="Members that each pod runs, where they share addresses and no --deployment says so.",
            show_default=False,
        ),
    ] = None,
    at_most: Annotated[
        int,
        typer.Option("--at-most", min=10, max=3600, help="Seconds to watch at most; a clear answer stops it earlier."),
    ] = int(LONGEST_S),
    cluster: ClusterOption = None,
    kubeconfig: KubeconfigOption = None,
    credentials: CredentialsOption = None,
    tls: TlsOption = False,
    ca_file: CaFileOption = None,
    proxy: ProxyOption = None,
    snapshot: Annotated[
        Path | None, typer.Option(help="Keep what was watched, for planner plan.", show_default=False)
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with pictures, too.", show_default=False)] = None,
    prometheus: Annotated[
        str | None,
        typer.Option(help="Look back at the groups' last days here instead: http://host:9090.", show_default=False),
    ] = None,
    days: Annotated[float, typer.Option(min=0.05, max=60, help="With --prometheus: how far back.")] = 14.0,
    until: Annotated[
        str | None, typer.Option(help="With --prometheus: up to when (ISO 8601).", show_default="now")
    ] = None,
    step: PastStepOption = STEP_S,
    capacity: CapacityOption = None,
    queues_each: QueuesEachOption = None,
    jobs: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_JOBS,
            help="With --prometheus: policies that are played at a time, a process each.",
            show_default=DEFAULT_JOBS_WORDS,
        ),
    ] = DEFAULT_JOBS,
    consumer_hour: Annotated[
        float | None,
        typer.Option(
            min=0, help="With --prometheus: what one consumer costs an hour, in any money.", show_default=False
        ),
    ] = None,
    system: SystemOption = None,
    match: MatchOption = None,
    label: LabelOption = None,
    bearer_token_file: BearerOption = None,
    basic_auth_file: BasicAuthOption = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Watch a group until the answer is clear, and say how many consumers it needs. No policy file; only reads.

    Ten minutes at most, mostly one or two. Exit code 0: an answer, which a hold is, too; 2 bad input; 3 out of reach.

    planner advise --kafka 10.0.0.5:9092 --group shop-payments --deployment shop/payments

    planner advise -n 10.0.0.5:9876 --all

    With --prometheus no broker is read: each group's last days as they were stand beside what the planner and a tuned
    KEDA would have done with the same load. Groups that cannot be compared are named with the reason. Exit code 0
    then, 3 where not one group could be played.

    planner advise --prometheus http://prometheus:9090 --all --consumer-hour 0.05 --html advice.html
    """
    check_output(form, output)
    if prometheus is not None:
        brokers = {
            "--name-server": name_server,
            "--kafka": kafka,
            "--deployment": deployment,
            "--max": highest,
            "--members-per-pod": members_per_pod,
            "--cluster": cluster,
            "--proxy": proxy,
            "--kubeconfig": kubeconfig,
            "--credentials": credentials,
            "--tls": tls,
            "--snapshot": snapshot,
        }
        _check_past(group, [name for name, value in brokers.items() if value], everything=everything)
        access = (prometheus, bearer_token_file, basic_auth_file, ca_file)
        span = (days, step, until)
        request = past_request(access, group, (system, match, label), span, (capacity, queues_each))
        with answering(form, output) as answer:
            _advise_past(request, jobs, consumer_hour, html, answer.format)
        return
    address = Address(name_server, kafka, cluster, credentials, tls, ca_file, tuple(proxy or ()))
    address.check("advise")
    _check(group, deployment, kubeconfig, snapshot, everything=everything)
    if everything and members_per_pod is not None:
        raise BadInputError("planner advise: --members-per-pod belongs to one group: name it with --group")
    workload = workload_of(deployment, "advise")
    _check_page(html)
    stated = capacities(capacity)
    conclusions, unread = answers(
        Request(address, group, workload, kubeconfig, highest, float(at_most), members_per_pod, stated)
    )
    write_files(conclusions, unread, snapshot, html, is_table=everything)
    with answering(form, output) as answer:
        print_conclusions(conclusions, unread, answer.format, is_table=everything)
    if unread:
        raise typer.Exit(OutOfReachError.exit_code)


def _check_past(group: str | None, others: Sequence[str], *, everything: bool) -> None:
    if others:
        raise BadInputError(f"planner advise: --prometheus reads no broker: leave {' and '.join(others)} out")
    if everything == (group is not None):
        raise BadInputError("planner advise: it goes with either --group NAME or --all: say one of them")


def _advise_past(request: "PastRequest", jobs: int, price: float | None, html: Path | None, form: Format) -> None:
    from planner.cli.past_advice import print_past, review_past, write_past_page

    _check_page(html)
    reviews, others = review_past(request, jobs)
    if html is not None:
        write_past_page(html, reviews, others, request.span, price)
    print_past(reviews, others, request.span, price, form)
    if not reviews:
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
