"""Where ``planner doctor`` gets its pictures from: a policy's group, a live installation, recorded samples."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from rich.text import Text

from planner.cli.console import errors
from planner.cli.policy_reading import read_policy
from planner.diagnosis.group_evidence import GroupEvidence
from planner.documents.data import SAMPLE
from planner.errors import BadInputError, OutOfReachError, PlannerError, UnknownNameError
from planner.model.deployments import Deployment
from planner.model.samples import GroupSample
from planner.sources.capture import open_capture
from planner.sources.live import SAMPLE_EVERY_S, Installation, watch_installation
from planner.sources.survey import Ground, Survey, open_kafka, open_rocketmq, survey


@dataclass(frozen=True)
class Wanted:
    """What the command line asked for."""

    policy: Path | None = None
    everything: bool = False
    name_server: str | None = None
    kafka: str | None = None
    cluster: str | None = None
    groups: Sequence[str] = ()
    capture: Path | None = None
    samples: Sequence[Path] = ()
    watch_s: float = 10.0
    deployment: str | None = None
    namespace: str | None = None
    kubeconfig: Path | None = None
    credentials: Path | None = None
    tls: bool = False
    ca_file: Path | None = None


@dataclass(frozen=True)
class Read:
    """The pictures of all groups that could be read, and the survey that they come from."""

    pictures: list[GroupEvidence]
    survey: Survey = field(default_factory=Survey)


def read(wanted: Wanted) -> Read:
    """Return the pictures of what was asked for.

    Raises ``BadInputError`` for options that do not go together, and what stands in the way of every group.
    """
    _check(wanted)
    if wanted.policy is not None:
        return _of_policy(wanted, wanted.policy)
    if wanted.name_server is not None:
        account, tls, ca_file = wanted.credentials, wanted.tls, wanted.ca_file
        opened = open_rocketmq(
            wanted.name_server, wanted.cluster, wanted.groups, account=account, uses_tls=tls, ca_file=ca_file
        )
        return _of_installation(wanted, opened)
    if wanted.kafka is not None:
        return _of_installation(wanted, open_kafka(wanted.kafka, wanted.groups, account=wanted.credentials))
    return _of_records(wanted)


def _check(wanted: Wanted) -> None:
    ways = {
        "--policy": wanted.policy,
        "--name-server": wanted.name_server,
        "--kafka": wanted.kafka,
        "--capture": wanted.capture,
        "--sample": wanted.samples,
    }
    given = [name for name, value in ways.items() if value]
    if len(given) != 1:
        raise BadInputError(
            f"planner doctor: found {' and '.join(given) or 'none'} of {', '.join(ways)}, expected one of them: "
            "planner doctor --all -n HOST:PORT is the quickest"
        )
    is_live = wanted.name_server is not None or wanted.kafka is not None
    if is_live and wanted.everything == bool(wanted.groups):
        raise BadInputError(f"planner doctor: {given[0]} goes with either --all or --group NAME: say one of them")
    if wanted.credentials is not None and not is_live:
        raise BadInputError("planner doctor: --credentials goes with -n or --kafka: a policy names its own file")
    if (wanted.tls or wanted.ca_file) and wanted.name_server is None:
        raise BadInputError("planner doctor: --tls and --ca-file go with -n: for Kafka they stand in the properties")
    if wanted.policy is not None and (wanted.everything or wanted.groups):
        raise BadInputError("planner doctor: --policy names its group: leave --all and --group out")
    if wanted.deployment is not None and wanted.policy is None and len(wanted.groups) != 1:
        raise BadInputError("planner doctor: --deployment belongs to one group: name it with --group")
    if wanted.kubeconfig is not None and wanted.deployment is None and wanted.policy is None:
        raise BadInputError("planner doctor: --kubeconfig needs --deployment NAME, or a policy that names one")


def _of_policy(wanted: Wanted, path: Path) -> Read:
    policy = read_policy(path, wanted.kubeconfig)
    group, found = policy.spec.source.group, Survey()
    asked = wanted.kubeconfig is not None or wanted.deployment is not None
    name = wanted.deployment or policy.spec.scale_target_ref.name
    namespace = wanted.namespace or policy.metadata.namespace
    serving = _Serving(group, name, namespace, wanted.kubeconfig) if asked else None
    _check_deployment(serving)
    with errors.status(f"reading group {group}") as status:
        seconds = max(wanted.watch_s, SAMPLE_EVERY_S)
        for _, said in watch_installation(Installation((policy,)), seconds, found.pace):
            found.note(group, said, named=True)
            if isinstance(said, PlannerError) and not found.samples:
                raise said
            looks = len(found.samples[group])
            status.update(f"watching group {group} for {wanted.watch_s:.0f} s: {looks} looks")
    samples = _with(found.samples[group], _deployment(serving, found))
    stated, bound = policy.snapshot_settings, policy.objective.oldest_message_s
    return Read([GroupEvidence(samples, found.pace.sample_every_s, stated.strategy, bound, stated.timing)], found)


def _of_installation(wanted: Wanted, opening: AbstractContextManager[Ground]) -> Read:
    name = wanted.deployment
    namespace = wanted.namespace or "default"
    serving = _Serving(wanted.groups[0], name, namespace, wanted.kubeconfig) if name else None
    _check_deployment(serving)
    with errors.status("asking which groups there are") as status, opening as ground:
        found = survey(ground, wanted.watch_s, lambda text: status.update(Text(text)), named=bool(wanted.groups))
    if not found.samples and found.failures:
        raise next(iter(found.failures.values()))
    deployment = _deployment(serving, found)
    pictures = [
        GroupEvidence(_with(of_group, deployment), found.pace.sample_every_s) for of_group in found.samples.values()
    ]
    return Read(pictures, found)


def _with(samples: Sequence[GroupSample], deployment: Deployment | None) -> tuple[GroupSample, ...]:
    """Return the samples, the newest with the Deployment."""
    return tuple(samples) if deployment is None else (*samples[:-1], replace(samples[-1], deployment=deployment))


@dataclass(frozen=True)
class _Serving:
    """The Deployment that was asked for, the group that it serves, and the way to its API server."""

    group: str
    name: str
    namespace: str
    kubeconfig: Path | None

    def __str__(self) -> str:
        return f"Deployment {self.namespace}/{self.name}"

    def read(self) -> Deployment:
        """Return it as it is now; raises as ``read_workload`` and ``KubernetesApi.connect`` do."""
        from planner.sources.kubernetes import KubernetesApi, read_workload

        with errors.status(f"reading {self}"), KubernetesApi.connect(self.kubeconfig) as api:
            return read_workload(api, self.namespace, self.name, datetime.now(UTC))


def _check_deployment(serving: _Serving | None) -> None:
    """Raise what no waiting mends, before anybody waits for the watch: a wrong name, no kubeconfig, no extra."""
    if serving is not None:
        with suppress(OutOfReachError):
            serving.read()


def _deployment(serving: _Serving | None, found: Survey) -> Deployment | None:
    """Return the Deployment as it is after the watch, ``None`` where it cannot be read: the survey then says why."""
    if serving is None:
        return None
    try:
        return serving.read()
    except PlannerError as error:
        found.problems.append((serving.group, f"{serving} was not read: {error}"))
        return None


def _of_records(wanted: Wanted) -> Read:
    every_s = SAMPLE_EVERY_S
    if wanted.capture is not None:
        capture = open_capture(wanted.capture)
        every_s = capture.header.sample_every_s
        recorded = list(capture.samples())
    else:
        recorded = sorted((SAMPLE.read(path) for path in wanted.samples), key=lambda one: one.at)
    found = Survey()
    for one in recorded:
        if not wanted.groups or one.group in wanted.groups:
            found.samples.setdefault(one.group, []).append(one)
    missing = [name for name in wanted.groups if name not in found.samples]
    if missing:
        there = ", ".join(sorted({one.group for one in recorded}))
        raise UnknownNameError(f"group {missing[0]} is not in these samples, which hold {there}")
    return Read([GroupEvidence(tuple(of_group), every_s) for of_group in found.samples.values()], found)
