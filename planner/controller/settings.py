"""The options of a controller: by flags, or by the environment variables of the same names."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from planner.errors import BadInputError

EVERYWHERE: Final = "0.0.0.0"  # noqa: S104  a pod is asked from outside of it
HEALTH_PORT: Final = 8080
METRICS_PORT: Final = 9090
LEASE: Final = "consumer-planner-controller"
WORKERS: Final = 4
POD_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class LogFormat(StrEnum):
    """How a line of the log looks: an object for machines, or words for people."""

    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    """The least that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a controller.

    ``namespaces`` are those whose plans it carries out, none means all. ``lease_name`` in ``lease_namespace`` lets one
    of several replicas act. ``workers`` is how many reconciles go on at once. Both ports are opened on
    ``listen_address``; a port of 0 is a free one. How forecasts did is kept below ``data``, ``None`` keeps nothing.
    Criteria of policies approve only plans that one of ``planning_accounts`` created. Of each policy's plans that have
    ended ``finished_plans`` stay, ``None`` sets no limit.
    """

    namespaces: tuple[str, ...]
    lease_name: str
    lease_namespace: str
    listen_address: str = EVERYWHERE
    health_port: int = HEALTH_PORT
    metrics_port: int = METRICS_PORT
    log_format: LogFormat = LogFormat.JSON
    log_level: LogLevel = LogLevel.INFO
    workers: int = WORKERS
    kubeconfig: Path | None = None
    data: Path | None = None
    planning_accounts: frozenset[str] = frozenset()
    finished_plans: int | None = None


def chosen_namespaces(named: Sequence[str], is_all: bool) -> tuple[str, ...]:
    """Return the namespaces of the options, each once; none means all. Raises ``BadInputError`` for both or neither."""
    names = tuple(dict.fromkeys(name.strip() for listed in named for name in listed.split(",") if name.strip()))
    if bool(names) == is_all:
        given = "both were given" if is_all else "none was given"
        raise BadInputError(f"{given}: name the namespaces by --namespace a,b, or say --all-namespaces")
    return names


def chosen_accounts(named: Sequence[str]) -> frozenset[str]:
    """Return the accounts of the option, as the API server names them."""
    return frozenset(name.strip() for listed in named for name in listed.split(",") if name.strip())


def choose_lease_namespace(
    named: str | None, namespaces: Sequence[str], pod_namespace: Path = POD_NAMESPACE_FILE
) -> str:
    """Return the namespace of the leader's lease: as named, the pod's own, or the first that is watched."""
    if named:
        return named
    if pod_namespace.exists():
        return pod_namespace.read_text(encoding="utf-8").strip()
    if namespaces:
        return namespaces[0]
    raise BadInputError("this is no pod and all namespaces are watched: name the lease's by --leader-namespace")
