"""Live groups, whichever system they live in: what policies name is watched, over few connections.

Policies that share an installation (the same servers and account) share its connections, and are read together.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.source import KafkaSource, RocketMQSource
from planner.errors import OutOfReachError, PlannerError, UnknownNameError
from planner.model.deployments import AlsoServing, Deployment, together
from planner.model.samples import GroupSample
from planner.text.printable import one_line
from planner.text.words import some
from planner.workload import clues_of, join_members, serving

if TYPE_CHECKING:
    from planner.sources.kubernetes import KubernetesApi

log = logging.getLogger(__name__)

SAMPLE_EVERY_S = 5.0

LEAST_READINGS = 2
"""Rates need two samples."""

_OF_A_SLOW_READING = 0.85
"""Gaps are longer than 1.75 periods: of slow readings one and a half, since a reading that failed makes two."""

SampleOrError = GroupSample | PlannerError
"""A group's sample, or why there is none."""

ReadGroups = Callable[[datetime], Iterable[tuple[str, SampleOrError]]]
"""Read all groups of an installation once, as of the given time: (group, its sample or error)."""

Complete = Callable[[ConsumerScalingPolicy, GroupSample], SampleOrError]
"""Add the group's Deployment to its sample, where the policy wants that."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Policies whose groups live behind the same servers and account."""

    policies: tuple[ConsumerScalingPolicy, ...]

    @property
    def source(self) -> RocketMQSource | KafkaSource:
        """The way in, as the first policy has it: the others' is the same."""
        return self.policies[0].spec.source

    @property
    def key(self) -> str:
        """What distinguishes this installation from all others: servers and account."""
        return _connection_key(self.policies[0])

    @property
    def name(self) -> str:
        """How sentences name it: system, cluster and servers."""
        source = self.source
        servers = source.bootstrap_servers if isinstance(source, KafkaSource) else source.name_servers
        return f"{source.system} {source.cluster} ({some(servers)})"


class Pace:
    """How far apart the readings of a watch lie: ``SAMPLE_EVERY_S``, unless most of them take longer than that.

    One member that does not answer costs a reading 10 s. Then nothing is missing between two of them, however long.
    """

    def __init__(self) -> None:
        self._took_s: list[float] = []

    def note(self, took_s: float) -> None:
        """Add a reading with any answer; one without an answer is missing, and no reason to be patient."""
        self._took_s.append(took_s)

    @property
    def sample_every_s(self) -> float:
        """The period by which gaps are judged. Where one reading in twenty or fewer is slow, these stay gaps."""
        took_s = sorted(self._took_s) or [0.0]
        return max(SAMPLE_EVERY_S, _OF_A_SLOW_READING * took_s[int(0.95 * (len(took_s) - 1))])


def installations(policies: Iterable[ConsumerScalingPolicy]) -> tuple[Installation, ...]:
    """Return the policies by installation."""
    ordered = sorted(policies, key=_connection_key)
    return tuple(Installation(tuple(together)) for _, together in groupby(ordered, key=_connection_key))


def _connection_key(policy: ConsumerScalingPolicy) -> str:
    source = policy.spec.source
    return source.model_dump_json(exclude={"group", "topics", "prometheus"})


def watch(policy: ConsumerScalingPolicy, seconds: float, pace: Pace | None = None) -> Iterator[GroupSample]:
    """Yield a sample of the policy's group every ``SAMPLE_EVERY_S`` for ``seconds``, the first at once.

    Raises what keeps the first reading from being done (``OutOfReachError``, ``UnknownNameError``, ``BadInputError``).
    A later reading that fails is logged and left out: the history marks the gap, and a broker that restarts must not
    end the watch. ``pace`` learns how far apart the readings lie.
    """
    has_answered = False
    for _, answer in watch_installation(Installation((policy,)), seconds, pace):
        if isinstance(answer, GroupSample):
            has_answered = True
            yield answer
        elif not has_answered:
            raise answer


def watch_installation(
    installation: Installation, seconds: float, pace: Pace | None = None
) -> Iterator[tuple[ConsumerScalingPolicy, SampleOrError]]:
    """Yield each policy with its group's sample or error, for every reading; failures are logged, the next one retries.

    With ``spec.kubernetes`` a sample carries its Deployment. ``pace`` learns how far apart the readings lie. Raises
    ``BadInputError`` for settings that cannot be.
    """
    pace = pace or Pace()
    by_group = {policy.spec.source.group: policy for policy in installation.policies}
    with ExitStack() as opened:
        complete = opened.enter_context(_open_deployments(installation.policies))
        read = None
        for _ in _ticks(seconds):
            at, started, has_answered = datetime.now(UTC), time.monotonic(), False
            try:
                read = read or opened.enter_context(_open(installation))
                for group, answer in read(at):
                    policy = by_group[group]
                    has_answered |= isinstance(answer, GroupSample)
                    yield (
                        policy,
                        _log_failure(group, complete(policy, answer) if isinstance(answer, GroupSample) else answer),
                    )
            except (OutOfReachError, UnknownNameError) as error:
                yield from ((policy, _log_failure(group, error)) for group, policy in by_group.items())
            if has_answered:
                pace.note(time.monotonic() - started)


@contextmanager
def open_group(policy: ConsumerScalingPolicy) -> Iterator[Callable[[datetime], GroupSample]]:
    """Give a function that reads the policy's group, each time as of the given time.

    Connections are opened once, here or with the first reading. A reading raises what keeps it from being done, as the
    opening does (``OutOfReachError``, ``UnknownNameError``, ``BadInputError``). Deployments are not read.
    """
    with _open(Installation((policy,))) as read:

        def sample(at: datetime) -> GroupSample:
            ((_, answer),) = read(at)
            if isinstance(answer, PlannerError):
                raise answer
            return answer

        yield sample


def _log_failure(group: str, answer: SampleOrError) -> SampleOrError:
    if isinstance(answer, PlannerError):
        log.warning("group %s was not read: %s", one_line(group), answer)
    return answer


def _ticks(seconds: float) -> Iterator[int]:
    """Yield when a reading is due: every ``SAMPLE_EVERY_S`` within ``seconds``, at once when the last one took longer.

    Slow readings make fewer of them and not a longer watch; there are two in any watch that has time for two.
    """
    started = due = time.monotonic()
    least = min(LEAST_READINGS, int(seconds // SAMPLE_EVERY_S) + 1)
    number = 0
    while number < least or due - started <= seconds:
        time.sleep(max(0.0, due - time.monotonic()))
        yield number
        number += 1
        due = max(due + SAMPLE_EVERY_S, time.monotonic())


@contextmanager
def _open(installation: Installation) -> Iterator[ReadGroups]:
    source = installation.source
    topics = {policy.spec.source.group: policy.spec.source.topics for policy in installation.policies}
    if isinstance(source, KafkaSource):
        with _open_kafka(source, topics) as read:
            yield read
    else:
        with _open_rocketmq(source, topics) as read:
            yield read


Topics = dict[str, tuple[str, ...] | None]
"""Group -> the topics that a reading is limited to."""


@contextmanager
def _open_rocketmq(source: RocketMQSource, topics: Topics) -> Iterator[ReadGroups]:
    from planner.sources.rocketmq import (  # noqa: PLC0415  only this system needs it
        Credentials,
        RocketMQAdmin,
        Tls,
        observe_group,
        observe_groups,
    )

    limited = {group: only for group, only in topics.items() if only is not None}
    whole = [group for group in topics if group not in limited]
    is_single = len(topics) == 1

    def read(at: datetime) -> Iterator[tuple[str, SampleOrError]]:
        if whole and not is_single:
            yield from observe_groups(admin, groups=whole, cluster=source.cluster, at=at)
        for group in topics if is_single else limited:
            try:
                yield group, observe_group(admin, cluster=source.cluster, group=group, topics=topics[group], at=at)
            except (OutOfReachError, UnknownNameError) as error:
                yield group, error

    account, spec = source.credentials_file, source.tls
    tls = Tls(spec.ca_file, spec.verify, spec.verify_names, spec.certificate_file, spec.key_file) if spec else None
    with RocketMQAdmin(
        source.name_servers,
        credentials=Credentials.read(account) if account else None,
        tls=tls,
        proxies=source.proxies or (),
    ) as admin:
        yield read


@contextmanager
def _open_kafka(source: KafkaSource, topics: Topics) -> Iterator[ReadGroups]:
    from planner.sources.kafka import KafkaAdmin, KafkaSettings, observe_groups  # noqa: PLC0415  needs the kafka extra

    settings = KafkaSettings.read(source.properties_file) if source.properties_file else None
    with KafkaAdmin(source.bootstrap_servers, settings=settings) as admin:
        yield lambda at: observe_groups(admin, cluster=source.cluster, groups=topics, at=at).items()


@contextmanager
def _open_deployments(policies: Sequence[ConsumerScalingPolicy]) -> Iterator[Complete]:
    """Give a function that completes a sample by its Deployment; without ``spec.kubernetes`` samples stay as they are.

    A Deployment that cannot be read is among the sample's problems; one that does not exist is the policy's mistake.
    """
    specs = {policy.spec.kubernetes for policy in policies} - {None}
    if not specs:
        yield lambda _, sample: sample
        return
    from planner.sources.kubernetes import KubernetesApi, read_workload  # noqa: PLC0415  needs the kubernetes extra

    def complete(policy: ConsumerScalingPolicy, sample: GroupSample) -> SampleOrError:
        if policy.spec.kubernetes is None:
            return sample
        namespace, kind, api = policy.metadata.namespace, policy.spec.target_kind, apis[policy.spec.kubernetes]
        deployments: list[Deployment] = []
        for name in policy.spec.target_names:
            try:
                version = policy.spec.target_api_version
                deployments.append(read_workload(api, namespace, name, sample.at, kind, version))
            except UnknownNameError as error:
                return error
            except OutOfReachError as error:
                problem = f"{kind} {namespace}/{name} was not read: {error}"
                return replace(sample, problems=(*sample.problems, problem))
        deployment = together(deployments)
        return replace(sample, deployment=_with_others(apis[policy.spec.kubernetes], policy, deployment, sample))

    with ExitStack() as opened:
        apis = {
            spec: opened.enter_context(KubernetesApi.connect(spec.kubeconfig_file, spec.context))
            for spec in specs
            if spec is not None
        }
        yield complete


def _with_others(
    api: "KubernetesApi", policy: ConsumerScalingPolicy, deployment: Deployment, sample: GroupSample
) -> Deployment:
    """Return the Deployment with the other workloads that serve the group: two more reads where some member is not its.

    Where the pods of the namespace cannot be read nobody knows, as before.
    """
    from planner.sources.kubernetes import read_pods  # noqa: PLC0415  needs the kubernetes extra

    clues = tuple(map(clues_of, sample.members))
    label = policy.snapshot_settings.member_label
    if deployment.pods is None or not join_members(deployment.pods, clues, label).members_without_pod:
        return deployment
    try:
        served = serving(read_pods(api, deployment.namespace), clues, label).members
    except OutOfReachError as error:
        log.debug("other workloads of group %s not read: %s", sample.group, error)
        return deployment
    others = ((workload, len(members)) for workload, members in served if workload not in deployment.workloads)
    return replace(deployment, also_serving=tuple(AlsoServing(*other) for other in others))
