"""``planner init``: ask the brokers and the cluster, and write a policy with a comment on every field."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from planner.advice.next_command import PolicyCommands
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
    ProxyOption,
    TlsOption,
    discover,
    workload_of,
)
from planner.cli.asking import ask, can_ask, is_mendable, show_refusal
from planner.cli.console import Answer, FormatOption, errors, print_next, text_console
from planner.cli.making import destination_of, write_document
from planner.errors import BadInputError, MissingExtraError, PlannerError, UnknownNameError
from planner.text.words import counted, some

if TYPE_CHECKING:
    from planner.cli.target import Target
    from planner.model.samples import GroupSample

SERVERS: Final[Mapping[str, tuple[str, str, Callable[[Address, str], Address]]]] = {
    "rocketmq": ("-n", "127.0.0.1:9876", lambda address, servers: replace(address, name_server=servers)),
    "kafka": ("--kafka", "127.0.0.1:9092", lambda address, servers: replace(address, kafka=servers)),
}
"""Of each system: the option that takes its servers, those that are offered, and what puts them into an address."""

LISTED: Final = 20
"""Names of groups that are shown before a person is asked for one."""


def init(
    group: Annotated[str | None, typer.Option("--group", "-g", help="The consumer group.", show_default=False)] = None,
    name_server: NameServerOption = None,
    kafka: KafkaOption = None,
    deployment: DeploymentOption = None,
    highest: Annotated[
        int | None,
        typer.Option("--max", min=1, max=10_000, help="Consumers at most.", show_default="as planner advise"),
    ] = None,
    members_per_pod: Annotated[
        int | None,
        typer.Option(
            "--members-per-pod",
            min=1,
            max=64,
            help="Members that each pod runs, as planner advise.",
            show_default=False,
        ),
    ] = None,
    capacity: Annotated[
        float | None,
        typer.Option(help="Messages per second that one consumer can do, if you know it.", show_default="learned"),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Policy file to write; - or yaml prints it instead.",
        ),
    ] = "policy.yaml",
    force: Annotated[bool, typer.Option("--force", help="Replace the file where it exists.")] = False,
    cluster: ClusterOption = None,
    kubeconfig: KubeconfigOption = None,
    credentials: CredentialsOption = None,
    tls: TlsOption = False,
    ca_file: CaFileOption = None,
    proxy: ProxyOption = None,
    form: FormatOption = None,
) -> None:
    """Write a commented policy for one group, which planner snapshot and planner plan take as it is. Only reads.

    On a terminal it asks for what the options leave out, and asks again where an answer is wrong. The Deployment is the
    one whose pods run the group's members, where Kubernetes can be read.

    planner init --kafka 10.0.0.5:9092 --group shop-payments -o shop-payments.yaml

    planner init -n 10.0.0.5:9876 --group shop-orders --deployment shop/orders --max 12
    """
    from planner.cli.default_policy import default_policy, without_bounds
    from planner.cli.policy_text import policy_text

    if capacity is not None and not 0 < capacity < inf:
        raise BadInputError(f"option --capacity: found {capacity:g}, expected messages per second above 0")
    to = destination_of(output, form)
    _check_output(to.file, force=force)
    workload = workload_of(deployment, "init")
    address, discovery = _installation(
        Address(name_server, kafka, cluster, credentials, tls, ca_file, tuple(proxy or ())), group
    )
    sample = _sample(address, discovery)
    target = _target(sample, workload, kubeconfig)
    policy = without_bounds(default_policy(address, sample, target, highest, members_per_pod, capacity))
    document = policy.model_dump(mode="json", by_alias=True, exclude_none=True)
    write_document(document, policy_text(policy, sample, target), to)
    doubts = list(_doubts(sample, target, members_per_pod))
    if to.answer is None:
        _warn(errors, doubts)
    else:
        _print(sample, target, to.file, to.answer, doubts)


def _doubts(sample: "GroupSample", target: "Target | None", members_per_pod: int | None) -> Iterator[str]:
    """Yield what a person has to state in the policy before a plan is made of it, a sentence each."""
    from planner.snapshot.pods import FIELD, pod_size
    from planner.workload import clues_of

    if target is None:
        yield "No Deployment is known: scaleTargetRef names a made-up one, so correct it before you apply a plan."
        if pod_size([clues_of(member) for member in sample.members], None, None, members_per_pod).members is None:
            yield f"Members share an address: state in {FIELD} how many each pod runs, or a plan holds (UnknownPods)."


def _print(
    sample: "GroupSample", target: "Target | None", file: Path | None, answer: Answer, doubts: Iterable[str]
) -> None:
    """Print whom the policy is for, and the next command."""
    step = PolicyCommands(str(file or "policy.yaml")).watch
    if not answer.is_text:
        answer.write("PolicySummary", {**_summary(sample, target, file), "doubts": list(doubts), "next": step})
        return
    console = text_console()
    written = f" written to {file}" if file else ""
    console.print(
        f"Policy for group {sample.group} ({counted(len(sample.members), 'member')}){written}.",
        soft_wrap=True,
    )
    _warn(console, doubts)
    print_next(step)


def _summary(sample: "GroupSample", target: "Target | None", file: Path | None) -> dict[str, Any]:
    """Return the group and the Deployment that serves it, ``None`` where nobody knows."""
    return {
        "system": sample.system,
        "cluster": sample.cluster,
        "group": sample.group,
        "members": len(sample.members),
        "deployment": str(target) if target else None,
        "file": str(file) if file else None,
    }


def _warn(console: Console, doubts: Iterable[str]) -> None:
    for doubt in doubts:
        console.print(doubt, style="yellow", soft_wrap=True)


def _check_output(output: Path | None, *, force: bool) -> None:
    if output is not None and output.exists() and not force:
        raise BadInputError(f"{output} exists, and planner init replaces nothing unasked: name another file or --force")


def _installation(address: Address, group: str | None) -> tuple[Address, Discovery]:
    """Return the address and what there is, the address asked for on a terminal where no option names it."""
    if address.name_server is None and address.kafka is None and can_ask():
        return _ask_address(address, group)
    address.check("init")
    return address, _discover(address, group)


def _ask_address(options: Address, group: str | None) -> tuple[Address, Discovery]:
    """Return the first address at which somebody answers: system and servers are asked for until there is one.

    A group or RocketMQ cluster that an option names wrongly ends the command, as no other address is the answer to it.
    """
    system = "kafka"
    while True:
        system = ask("RocketMQ or Kafka?", _system, option="-n or --kafka", default=system)
        option, default, with_servers = SERVERS[system]
        servers = ask("Its servers, HOST:PORT", str, option=f"{option} HOST:PORT", default=default)
        address = with_servers(options, servers)
        try:
            address.check("init")
            return address, _discover(address, group)
        except PlannerError as error:
            if isinstance(error, UnknownNameError) or not is_mendable(error):
                raise
            show_refusal(error)


def _system(answer: str) -> str:
    """Return ``rocketmq`` or ``kafka``; raises ``BadInputError`` for anything else."""
    system = answer.lower()
    if system not in SERVERS:
        raise BadInputError(f"found {answer!r}, expected {' or '.join(SERVERS)}")
    return system


def _discover(address: Address, group: str | None) -> Discovery:
    """Return the named group, or all that have members or commits; raises ``BadInputError`` where there is none."""
    with errors.status("asking the brokers"):
        discovery = discover(address, () if group is None else (group,))
    if not discovery.samples:
        raise BadInputError(
            f"planner init: no group at {address.kafka or address.name_server} has members or commits: start a "
            "consumer, or check the address"
        )
    return discovery


def _sample(address: Address, discovery: Discovery) -> "GroupSample":
    """Return a sample of the group that is named, of the only one, or of the one that a person chooses."""
    names = sorted(discovery.samples)
    if len(names) == 1:
        return discovery.samples[names[0]]
    if not can_ask():
        raise BadInputError(f"planner init: there are {len(names)} groups ({some(names)}): name one with --group")
    errors.print(f"Groups: {some(names, LISTED)}", soft_wrap=True)

    def sample_of(name: str) -> "GroupSample":
        # Read again where it is not among them: it may be new, or the brokers say what it is instead.
        return discovery.samples[name] if name in discovery.samples else _discover(address, name).samples[name]

    return ask("Which group?", sample_of, option="--group NAME")


def _target(sample: "GroupSample", workload: tuple[str, str] | None, kubeconfig: Path | None) -> "Target | None":
    """Return the Deployment that is named, else the one whose pods run the members, else the one that a person names.

    ``None`` where that is unknown. Raises what the API server answers for a Deployment that is named, or to a
    kubeconfig that is.
    """
    target = _detect_target(sample, kubeconfig) if workload is None else _named_target(*workload, kubeconfig, sample)
    if target is not None:
        from planner.cli.target import doubts

        for doubt in doubts(target, sample):
            errors.print(f"planner: {doubt}")
    return target


def _named_target(namespace: str, name: str, kubeconfig: Path | None, sample: "GroupSample") -> "Target":
    from planner.cli.target import read_target

    with errors.status(f"reading Deployment {namespace}/{name}"):
        return read_target(namespace, name, kubeconfig, sample)


def _detect_target(sample: "GroupSample", kubeconfig: Path | None) -> "Target | None":
    """Return the Deployment whose pods run the members; where their pods do not show it, a person may."""
    from planner.cli.target import find_target

    try:
        with errors.status("asking Kubernetes which Deployment runs the group"):
            target, problems = find_target(sample, kubeconfig)
    except PlannerError as error:
        is_forbidden = _is_forbidden(error)
        if kubeconfig is not None and not (is_forbidden and can_ask()):
            raise
        errors.print(f"planner: Kubernetes is not read: {error}")
        return _ask_target(sample, kubeconfig) if is_forbidden and can_ask() else None
    for problem in problems:
        errors.print(f"planner: {problem}")
    return _ask_target(sample, kubeconfig) if target is None and can_ask() else target


def _is_forbidden(error: PlannerError) -> bool:
    """Return whether the pods of all namespaces are not ours to read: one Deployment may be."""
    if isinstance(error, MissingExtraError):
        return False
    from planner.sources.kubernetes import ForbiddenError

    return isinstance(error, ForbiddenError)


def _ask_target(sample: "GroupSample", kubeconfig: Path | None) -> "Target | None":
    """Return the Deployment that a person names; ``None`` where the answer is empty."""

    def target_of(answer: str) -> "Target | None":
        workload = workload_of(answer or None, "init")
        return None if workload is None else _named_target(*workload, kubeconfig, sample)

    question = "Which Deployment runs its consumers, NAMESPACE/NAME (empty: none is known)?"
    return ask(question, target_of, option="--deployment NAMESPACE/NAME", default="")
