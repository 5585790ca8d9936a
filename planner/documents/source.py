"""``spec.source`` of a policy: where one consumer group lives, and how to get in.

Secrets never stand in a policy: it names the files that hold them, as a mounted Kubernetes Secret does, or connections
of Airflow (``airflow://CONN_ID``), which only Airflow's tasks can read.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictStr, WithJsonSchema
from pydantic.alias_generators import to_camel

from planner.text.bounded import is_path

Name = Annotated[StrictStr, Field(min_length=1)]
MOST_NAMES = 1_000
"""Topics or addresses in one field: what names more has another group, or leaves the field out."""
Names = Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_NAMES)]
MOST_KEYS = 64
"""Names in a mapping whose names are not ours: labels, a strategy's options, a client's settings."""
Labels = Annotated[dict[str, str], Field(max_length=MOST_KEYS)]
Options = Annotated[dict[str, Any], Field(max_length=MOST_KEYS)]
MOST_PROXIES = 32
"""One proxy lists the clients of all, so that a few are enough."""
ConnectionReference = Annotated[StrictStr, Field(pattern=r"^airflow://[A-Za-z0-9_.:-]+$")]


_AnyPath = TypeVar("_AnyPath", str, Path)


def check_path(path: _AnyPath) -> _AnyPath:
    """Return the path. Raises ``ValueError`` for characters that no file's name can hold."""
    if not is_path(str(path)):
        raise ValueError("a path of whole characters, none of them \\0")
    return path


FilePath = Annotated[Path, AfterValidator(check_path)]
Secret = Annotated[
    Path | ConnectionReference, AfterValidator(check_path), WithJsonSchema({"type": "string", "format": "path"})
]
"""Where a secret is: a file, or a connection of Airflow, which is text."""


class SpecModel(BaseModel):
    """A piece of a document: unknown fields are refused, names are spelt in camel case."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)


class TlsSpec(SpecModel):
    """TLS to all servers: authorities to trust (PEM; the system's when absent), our certificate, what is verified."""

    ca_file: FilePath | None = None
    verify: StrictBool = True
    verify_names: StrictBool = True
    certificate_file: FilePath | None = None
    key_file: FilePath | None = None


class PrometheusSpec(SpecModel):
    """A Prometheus server that has the group's history; files hold a bearer token, or ``user:password``.

    ``labels`` rename what a relabelling server calls ``cluster``, ``group``, ``topic``, ``partition`` or ``broker``;
    ``matchers`` are labels that every series must have.
    """

    url: Annotated[StrictStr, Field(pattern=r"^https?://[^\s@]+$")]
    labels: Labels = Field(default_factory=dict)
    matchers: Labels = Field(default_factory=dict)
    bearer_token_file: Secret | None = None
    basic_auth_file: Secret | None = None
    ca_file: FilePath | None = None


class KubernetesSpec(SpecModel):
    """How to read the Deployment: a kubeconfig and one of its contexts.

    Without either, the service account of the pod that the planner runs in, or else kubectl's own default.
    ``memberLabel`` is a label of the pods whose value is one of their client's names.
    """

    kubeconfig_file: Secret | None = None
    context: Name | None = None
    member_label: Name | None = None


class RocketMQSource(SpecModel):
    """A RocketMQ group: name servers as ``host:port``, cluster, group, its topics if not all.

    ``proxies`` are remoting ports of proxies (``host:port``, 8080 unless set), which alone list gRPC clients.
    ``credentialsFile`` holds ``accessKey`` and ``secretKey``, which proxies get, too; see docs/connect-rocketmq.md.
    """

    system: Literal["rocketmq"]
    name_servers: Names
    cluster: Name
    group: Name
    topics: Names | None = None
    proxies: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_PROXIES)] | None = None
    credentials_file: Secret | None = None
    tls: TlsSpec | None = None
    prometheus: PrometheusSpec | None = None


class KafkaSource(SpecModel):
    """A Kafka group: bootstrap servers as ``host:port``, a name for the cluster, group, its topics if not all.

    ``propertiesFile`` holds client properties (SASL, TLS); see docs/connect-kafka.md.
    """

    system: Literal["kafka"]
    bootstrap_servers: Names
    cluster: Name
    group: Name
    topics: Names | None = None
    properties_file: Secret | None = None
    prometheus: PrometheusSpec | None = None


Source = Annotated[RocketMQSource | KafkaSource, Field(discriminator="system")]
