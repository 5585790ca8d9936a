"""``planner init``: ask the brokers and the cluster, and write a policy with a comment on every field."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from planner.advice.next_step import PolicyCommands
from planner.cli.address import (
    Address,
    CaFileOption,
    ClusterOption,
    CredentialsOption,
    DeploymentOption,
    KafkaOption,
    KubeconfigOption,
    NameServerOption,
    TlsOption,
    discover,
    workload_of,
)
from planner.cli.console import Answer, FormatOption, errors, print_next, text_console
from planner.cli.making import destination_of, write_document
from planner.errors import BadInputError, PlannerError
from planner.words import counted, some

if TYPE_CHECKING:
    from planner.cli.default_policy import Target
    from planner.documents.policy import ConsumerScalingPolicy
    from planner.model.samples import GroupSample


def init(
    group: Annotated[str | None, typer.Option("--group", "-g", help="The consumer group.", show_default=False)] = None,
    name_server: NameServerOption = None,
    kafka: KafkaOption = None,
    deployment: DeploymentOption = None,
    highest: Annotated[
        int | None,
        typer.Option("--max", min=1, max=10_000, help="Consumers at most.", show_default="as planner advise"),
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
    form: FormatOption = None,
) -> None:
    """Write a commented policy for one group, which planner snapshot and planner plan take as it is. Only reads.

    On a terminal it asks for what the options leave out. The Deployment is the one whose pods run the group's members,
    where Kubernetes can be read.

    planner init --kafka 10.0.0.5:9092 --group shop-payments -o shop-payments.yaml

    planner init -n 10.0.0.5:9876 --group shop-orders --deployment shop/orders --max 12
    """
    from planner.cli.policy_text import policy_text

    to = destination_of(output, form)
    _check_output(to.file, force=force)
    address = _address(Address(name_server, kafka, cluster, credentials, tls, ca_file))
    with errors.status("asking the brokers"):
        sample = _sample(address, group)
    target = _target(sample, deployment, kubeconfig)
    policy = _policy(address, sample, target, highest)
    document = policy.model_dump(mode="json", by_alias=True, exclude_none=True)
    write_document(document, policy_text(policy, sample, is_deployment_known=target is not None), to)
    if to.answer is None:
        _warn_unknown_target(errors, target)
    else:
        _print(sample, target, to.file, to.answer)


def _print(sample: "GroupSample", target: "Target | None", file: Path | None, answer: Answer) -> None:
    """Print whom the policy is for, and the next command."""
    step = PolicyCommands(str(file or "policy.yaml")).watch
    if not answer.is_text:
        answer.write("PolicySummary", {**_summary(sample, target, file), "next": step})
        return
    console = text_console()
    written = f" written to {file}" if file else ""
    console.print(
        f"Policy for group {sample.group} ({counted(len(sample.members), 'member')}){written}.",
        soft_wrap=True,
    )
    _warn_unknown_target(console, target)
    print_next(step)


def _summary(sample: "GroupSample", target: "Target | None", file: Path | None) -> dict[str, Any]:
    """Return the group and the Deployment that serves it, ``None`` where nobody knows."""
    return {
        "system": sample.system,
        "cluster": sample.cluster,
        "group": sample.group,
        "members": len(sample.members),
        "deployment": f"{target.namespace}/{target.name}" if target else None,
        "file": str(file) if file else None,
    }


def _warn_unknown_target(console: Console, target: "Target | None") -> None:
    if target is None:
        console.print(
            "No Deployment is known: scaleTargetRef names a made-up one, so correct it before you apply a plan.",
            style="yellow",
            soft_wrap=True,
        )


def _check_output(output: Path | None, *, force: bool) -> None:
    if output is not None and output.exists() and not force:
        raise BadInputError(f"{output} exists, and planner init replaces nothing unasked: name another file or --force")


def _address(address: Address) -> Address:
    """Return the address, asked for on a terminal where no option names it."""
    if address.name_server is None and address.kafka is None and sys.stdin.isatty():
        system = typer.prompt("RocketMQ or Kafka?", default="kafka").strip().lower()
        servers = typer.prompt("Its servers, HOST:PORT", default="127.0.0.1:9092" if system == "kafka" else None)
        name_server, kafka = (None, servers) if system == "kafka" else (servers, None)
        address = Address(name_server, kafka, address.cluster, address.credentials, address.tls, address.ca_file)
    address.check("init")
    return address


def _sample(address: Address, group: str | None) -> "GroupSample":
    """Return a sample of the group, of the only one where none is named, or of the one that a person chooses."""
    if group is not None:
        return discover(address, (group,)).samples[group]
    samples = discover(address, ()).samples
    names = sorted(samples)
    if len(names) == 1:
        return samples[names[0]]
    if sys.stdin.isatty() and names:
        return samples[_ask_group(names)]
    raise BadInputError(f"planner init: there are {len(names)} groups ({some(names)}): name one with --group")


def _ask_group(names: Sequence[str]) -> str:
    errors.print(f"Groups: {', '.join(names)}")
    name = str(typer.prompt("Which group?"))
    if name not in names:
        raise BadInputError(f"planner init: group {name} is not among {some(names)}: correct its name")
    return name


def _target(sample: "GroupSample", deployment: str | None, kubeconfig: Path | None) -> "Target | None":
    """Return the Deployment that is named, else the one whose pods run the members; ``None`` where nobody can tell.

    Raises what the API server says to a Deployment that is named, or to a kubeconfig that is.
    """
    from planner.cli.default_policy import Target

    workload = workload_of(deployment, "init")
    if workload is not None:
        from planner.cli.advise import check_target

        target = Target(*workload, kubeconfig)
        check_target(target)
        return target
    try:
        return _serving(sample, kubeconfig)
    except PlannerError as error:
        if kubeconfig is not None:
            raise
        errors.print(f"planner: Kubernetes is not read: {error}")
        return None


def _serving(sample: "GroupSample", kubeconfig: Path | None) -> "Target | None":
    """Return the Deployment whose pods run the members; raises what keeps the pods from being read."""
    from planner.cli.default_policy import Target
    from planner.sources.kubernetes import KubernetesApi, read_pods
    from planner.workload import clues_of, serving

    with errors.status("asking Kubernetes which Deployment runs the group"), KubernetesApi.connect(kubeconfig) as api:
        result = serving(read_pods(api, None), tuple(map(clues_of, sample.members)))
    workload = result.deployment
    if workload is None:
        for problem in result.problems[:3]:
            errors.print(f"planner: {problem}")
        return None
    return Target(workload.namespace, workload.name, kubeconfig)


def _policy(
    address: Address, sample: "GroupSample", target: "Target | None", highest: int | None
) -> "ConsumerScalingPolicy":
    from planner.cli.default_policy import default_policy

    return default_policy(address, sample, target, highest)
