"""An installation by its address alone, as ``planner advise`` and ``planner init`` take it: servers and account."""

import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.errors import BadInputError, PlannerError, UnknownNameError
from planner.text.words import nearest_first, some

if TYPE_CHECKING:
    from planner.model.samples import GroupSample
    from planner.sources.survey import OpenInstallation

NameServerOption = Annotated[
    str | None,
    typer.Option("--name-server", "-n", help="RocketMQ name servers, host:port;host:port.", show_default=False),
]
KafkaOption = Annotated[
    str | None, typer.Option("--kafka", help="Kafka bootstrap servers, host:port,host:port.", show_default=False)
]
ClusterOption = Annotated[str | None, typer.Option("--cluster", help="Only this RocketMQ cluster.", show_default=False)]
DeploymentOption = Annotated[
    str | None,
    typer.Option(
        "--deployment",
        metavar="NAMESPACE/NAME",
        help="The Deployment that runs the group: counts are then of its pods.",
        show_default=False,
    ),
]
KubeconfigOption = Annotated[
    Path | None,
    typer.Option("--kubeconfig", help="How to reach its API server.", show_default="kubectl's own"),
]
CredentialsOption = Annotated[
    Path | None,
    typer.Option(
        "--credentials",
        help="The account's file: accessKey and secretKey, or Kafka client properties.",
        show_default=False,
    ),
]
ProxyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--proxy",
        metavar="HOST:PORT",
        help="RocketMQ 5: the remoting port (8080) of a proxy, which alone lists gRPC clients; may be repeated.",
        show_default=False,
    ),
]
TlsOption = Annotated[bool, typer.Option("--tls", help="RocketMQ: talk TLS, with the system's authorities.")]
CaFileOption = Annotated[
    Path | None,
    typer.Option("--ca-file", help="RocketMQ: talk TLS, and trust the authorities in this file.", show_default=False),
]


@dataclass(frozen=True, slots=True)
class Address:
    """Servers and account of one installation; exactly one of ``name_server`` and ``kafka`` is set."""

    name_server: str | None = None
    kafka: str | None = None
    cluster: str | None = None
    credentials: Path | None = None
    tls: bool = False
    ca_file: Path | None = None
    proxies: tuple[str, ...] = ()

    def check(self, command: str) -> None:
        """Raise ``BadInputError`` unless the options name one installation and fit its system."""
        if (self.name_server is None) == (self.kafka is None):
            amount = "neither" if self.kafka is None else "both"
            raise BadInputError(
                f"planner {command}: found {amount} of --name-server and --kafka, expected one of them: "
                f"planner {command} -n HOST:9876 or planner {command} --kafka HOST:9092"
            )
        if self.kafka is not None and (self.tls or self.ca_file or self.cluster or self.proxies):
            raise BadInputError(
                f"planner {command}: --cluster, --proxy, --tls and --ca-file go with -n: Kafka has TLS in the "
                "properties that --credentials names"
            )

    @property
    def server(self) -> str:
        """The option that names the servers, as a shell takes it."""
        if self.kafka is not None:
            return f"--kafka {shlex.quote(self.kafka)}"
        return f"-n {shlex.quote(self.name_server or '')}"

    @property
    def account(self) -> str:
        """The other options, as a shell takes them; empty or with a blank before it."""
        options = [f"--cluster {shlex.quote(self.cluster)}"] if self.cluster else []
        options += [f"--credentials {shlex.quote(str(self.credentials))}"] if self.credentials else []
        options += ["--tls"] if self.tls else []
        options += [f"--proxy {shlex.quote(proxy)}" for proxy in self.proxies]
        options += [f"--ca-file {shlex.quote(str(self.ca_file))}"] if self.ca_file else []
        return "".join(f" {option}" for option in options)

    def source(self, group: str, cluster: str) -> dict[str, Any]:
        """Return ``spec.source`` of a policy for the group, which lives in ``cluster``, as the document spells it."""
        if self.kafka is not None:
            account = {"propertiesFile": self.credentials} if self.credentials else {}
            servers = {"system": "kafka", "bootstrapServers": _split(self.kafka, ",")}
            return {**servers, "cluster": cluster, "group": group, **account}
        account = {"credentialsFile": self.credentials} if self.credentials else {}
        tls = {"tls": {"caFile": self.ca_file}} if self.tls or self.ca_file else {}
        servers = {"system": "rocketmq", "nameServers": _split(self.name_server or "", ";")}
        proxies = {"proxies": self.proxies} if self.proxies else {}
        return {**servers, "cluster": cluster, "group": group, **proxies, **account, **tls}

    def open(self, groups: Sequence[str]) -> "AbstractContextManager[OpenInstallation]":
        """Return the open installation; no ``groups`` means all of them. Raises as ``survey.open_…`` do."""
        from planner.sources.survey import open_kafka, open_rocketmq

        if self.kafka is not None:
            return open_kafka(self.kafka, groups, account=self.credentials)
        return open_rocketmq(
            self.name_server or "",
            self.cluster,
            groups,
            account=self.credentials,
            uses_tls=self.tls,
            ca_file=self.ca_file,
            proxies=self.proxies,
        )


def _split(servers: str, separator: str) -> tuple[str, ...]:
    return tuple(server.strip() for server in servers.split(separator) if server.strip())


@dataclass(frozen=True, slots=True)
class Discovery:
    """What one reading of an installation gives: the newest sample of each group, and the groups not read, with why."""

    samples: "dict[str, GroupSample]"
    failures: dict[str, PlannerError]


def discover(address: Address, groups: Sequence[str]) -> Discovery:
    """Return one sample of each of the groups, or of all; unused ones (no member, no commit) are left out.

    Raises what keeps the servers from being read, and for a group that was named the reason why it was not read: where
    there is no such group, with the nearest names of those that there are.
    """
    from planner.model.samples import GroupSample

    samples: dict[str, GroupSample] = {}
    failures: dict[str, PlannerError] = {}
    with address.open(groups) as installation:
        for group, response in installation.read(installation.groups, datetime.now(UTC)):
            if isinstance(response, GroupSample):
                samples[group] = response
            elif group in groups:
                raise _with_nearest(address, group, response)
            elif not isinstance(response, UnknownNameError):
                failures[group] = response
    if not samples and failures:
        raise next(iter(failures.values()))
    return Discovery(samples, failures)


def _with_nearest(address: Address, group: str, error: PlannerError) -> PlannerError:
    """Return the error on a group, with the groups that there are where it is not one of them; nobody may list them."""
    if not isinstance(error, UnknownNameError):
        return error
    try:
        with address.open(()) as installation:
            names = installation.groups
    except PlannerError:
        return error
    return error if group in names else UnknownNameError(f"{error}; there are {some(nearest_first(group, names))}")


def workload_of(deployment: str | None, command: str) -> tuple[str, str] | None:
    """Return namespace and name of ``--deployment``; the namespace is ``default`` where only a name came."""
    if deployment is None:
        return None
    namespace, slash, name = deployment.rpartition("/")
    if not name or "/" in namespace or (slash and not namespace):
        raise BadInputError(f"planner {command}: --deployment {deployment}: expected NAMESPACE/NAME, like shop/orders")
    return namespace or "default", name
