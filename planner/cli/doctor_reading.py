"""Where ``planner doctor`` gets its evidence from: a policy's group, a live installation, recorded samples."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from rich.text import Text

from planner.cli.console import errors
from planner.cli.policy_reading import read_policy
from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.shared_clients import with_shared_clients
from planner.documents.data import SAMPLE
from planner.errors import BadInputError, OutOfReachError, PlannerError, UnknownNameError
from planner.model.deployments import APPS, Deployment
from planner.model.samples import GroupSample
from planner.sources.capture import open_capture
from planner.sources.live import SAMPLE_EVERY_S, Installation, watch_installation
from planner.sources.survey import OpenInstallation, Survey, open_kafka, open_rocketmq, survey
from planner.text.words import duration


@dataclass(frozen=True)
class DoctorOptions:
    """The options of the command line."""

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
    proxies: Sequence[str] = ()


@dataclass(frozen=True)
class Read:
    """The evidence on all groups that could be read, and the survey that it comes from."""

    pictures: list[GroupEvidence]
    survey: Survey = field(default_factory=Survey)


def read(options: DoctorOptions) -> Read:
    """Return the evidence on what was asked for.

    Raises ``BadInputError`` for options that do not go together, and what prevents the reading of every group.
    """
    _check(options)
    if options.policy is not None:
        return _of_policy(options, options.policy)
    if options.name_server is not None:
        account, tls, ca_file = options.credentials, options.tls, options.ca_file
        opened = open_rocketmq(
            options.name_server,
            options.cluster,
            options.groups,
            account=account,
            uses_tls=tls,
            ca_file=ca_file,
            proxies=options.proxies,
        )
        return _of_installation(options, opened)
    if options.kafka is not None:
        return _of_installation(options, open_kafka(options.kafka, options.groups, account=options.credentials))
    return _of_records(options)


def _check(options: DoctorOptions) -> None:
    sources = {
        "--policy": options.policy,
        "--name-server": options.name_server,
        "--kafka": options.kafka,
        "--capture": options.capture,
        "--sample": options.samples,
    }
    given = [name for name, value in sources.items() if value]
    if len(given) != 1:
        raise BadInputError(
            f"planner doctor: found {' and '.join(given) or 'none'} of {', '.join(sources)}, expected one of them: "
            "planner doctor --all -n HOST:PORT is the quickest"
        )
    is_live = options.name_server is not None or options.kafka is not None
    if is_live and options.everything == bool(options.groups):
        raise BadInputError(f"planner doctor: {given[0]} goes with either --all or --group NAME: say one of them")
    if options.credentials is not None and not is_live:
        raise BadInputError("planner doctor: --credentials goes with -n or --kafka: a policy names its own file")
    _check_of_rocketmq(options)
    if options.policy is not None and (options.everything or options.groups):
        raise BadInputError("planner doctor: --policy names its group: leave --all and --group out")
    if options.deployment is not None and options.policy is None and len(options.groups) != 1:
        raise BadInputError("planner doctor: --deployment belongs to one group: name it with --group")
    if options.kubeconfig is not None and options.deployment is None and options.policy is None:
        raise BadInputError("planner doctor: --kubeconfig needs --deployment NAME, or a policy that names one")


def _check_of_rocketmq(options: DoctorOptions) -> None:
    if options.name_server is not None:
        return
    if options.tls or options.ca_file:
        raise BadInputError("planner doctor: --tls and --ca-file go with -n: for Kafka they stand in the properties")
    if options.proxies:
        raise BadInputError("planner doctor: --proxy goes with -n: a policy names them in spec.source.proxies")


def _of_policy(options: DoctorOptions, path: Path) -> Read:
    policy = read_policy(path, options.kubeconfig)
    group, survey_result = policy.spec.source.group, Survey()
    # Several targets, and those of other kinds, are read with the group, as the policy names them.
    is_named = bool(policy.spec.targets) or policy.spec.target_api_version != APPS
    asked = options.deployment is not None or (options.kubeconfig is not None and not is_named)
    name = options.deployment or policy.spec.target_names[0]
    namespace = options.namespace or policy.metadata.namespace
    serving = _Serving(group, name, namespace, options.kubeconfig) if asked else None
    _check_deployment(serving)
    with errors.status(f"reading group {group}") as status:
        seconds = max(options.watch_s, SAMPLE_EVERY_S)
        for _, response in watch_installation(Installation((policy,)), seconds, survey_result.pace):
            survey_result.note(group, response, named=True)
            if isinstance(response, PlannerError) and not survey_result.samples:
                raise response
            count = len(survey_result.samples[group])
            status.update(f"watching group {group} for {duration(options.watch_s)}: {count} samples")
    samples = _with(survey_result.samples[group], _deployment(serving, survey_result))
    stated, bound = policy.snapshot_settings, policy.objective.oldest_message_s
    evidence = GroupEvidence(samples, survey_result.pace.sample_every_s, stated.strategy, bound, stated.timing)
    return Read(with_shared_clients([evidence]), survey_result)


def _of_installation(options: DoctorOptions, opening: AbstractContextManager[OpenInstallation]) -> Read:
    name = options.deployment
    namespace = options.namespace or "default"
    serving = _Serving(options.groups[0], name, namespace, options.kubeconfig) if name else None
    _check_deployment(serving)
    with errors.status("asking which groups there are") as status, opening as servers:
        survey_result = survey(
            servers, options.watch_s, lambda text: status.update(Text(text)), named=bool(options.groups)
        )
    if not survey_result.samples and survey_result.failures:
        raise next(iter(survey_result.failures.values()))
    deployment = _deployment(serving, survey_result)
    pictures = [
        GroupEvidence(_with(of_group, deployment), survey_result.pace.sample_every_s)
        for of_group in survey_result.samples.values()
    ]
    return Read(with_shared_clients(pictures), survey_result)


def _with(samples: Sequence[GroupSample], deployment: Deployment | None) -> tuple[GroupSample, ...]:
    """Return the samples, the newest with the Deployment."""
    return tuple(samples) if deployment is None else (*samples[:-1], replace(samples[-1], deployment=deployment))


@dataclass(frozen=True)
class _Serving:
    """The Deployment that was asked for, the group that it serves, and how its API server is reached."""

    group: str
    name: str
    namespace: str
    kubeconfig: Path | None

    def __str__(self) -> str:
        return f"Deployment {self.namespace}/{self.name}"

    def read(self) -> Deployment:
        """Return it as it is now; raises as ``read_named`` and ``KubernetesApi.connect`` do."""
        from planner.sources.kubernetes import KubernetesApi, read_named

        with errors.status(f"reading {self}"), KubernetesApi.connect(self.kubeconfig) as api:
            return read_named(api, self.namespace, self.name, datetime.now(UTC))


def _check_deployment(serving: _Serving | None) -> None:
    """Raise what no waiting mends, before anybody waits for the watch: a wrong name, no kubeconfig, no extra."""
    if serving is not None:
        with suppress(OutOfReachError):
            serving.read()


def _deployment(serving: _Serving | None, survey_result: Survey) -> Deployment | None:
    """Return the Deployment as it is after the watch, ``None`` where it cannot be read (reason: in the survey)."""
    if serving is None:
        return None
    try:
        return serving.read()
    except PlannerError as error:
        survey_result.problems.append((serving.group, f"{serving} was not read: {error}"))
        return None


def _of_records(options: DoctorOptions) -> Read:
    every_s = SAMPLE_EVERY_S
    if options.capture is not None:
        capture = open_capture(options.capture)
        every_s = capture.header.sample_every_s
        recorded = list(capture.samples())
    else:
        recorded = sorted((SAMPLE.read(path) for path in options.samples), key=lambda sample: sample.at)
    survey_result = Survey()
    for sample in recorded:
        if not options.groups or sample.group in options.groups:
            survey_result.samples.setdefault(sample.group, []).append(sample)
    missing = [name for name in options.groups if name not in survey_result.samples]
    if missing:
        present = ", ".join(sorted({sample.group for sample in recorded}))
        raise UnknownNameError(f"group {missing[0]} is not in these samples, which hold {present}")
    pictures = [GroupEvidence(tuple(of_group), every_s) for of_group in survey_result.samples.values()]
    return Read(with_shared_clients(pictures), survey_result)
