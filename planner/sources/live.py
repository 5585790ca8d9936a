"""The live source of one group, whichever system it lives in: one look, or a watch of many."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.source import KafkaSource, RocketMQSource, Source
from planner.errors import BadInputError, OutOfReachError, UnknownNameError
from planner.model.samples import GroupSample

log = logging.getLogger(__name__)

SAMPLE_EVERY_S = 5.0

Look = Callable[[datetime], GroupSample]
"""Read the group once, as of the given time."""


def watch(policy: ConsumerScalingPolicy, seconds: float) -> Iterator[GroupSample]:
    """Yield a sample of the group every ``SAMPLE_EVERY_S`` for ``seconds``, the first at once.

    With ``spec.kubernetes`` each sample carries its Deployment.

    Raises what keeps the first look from being taken (``OutOfReachError``, ``UnknownNameError``, ``BadInputError``).
    A later look that fails is logged and left out: the history marks the gap, and a broker that restarts must not end
    the watch.
    """
    has_answered = False
    source = policy.spec.source
    with open_group(source) as look, open_deployment(policy) as look_at_deployment:
        for _ in _ticks(seconds):
            try:
                sample = look_at_deployment(look(datetime.now(UTC)))
            except (OutOfReachError, UnknownNameError) as error:
                if not has_answered:
                    raise
                log.warning("group not read", extra={"group": source.group, "reason": str(error)})
            else:
                has_answered = True
                yield sample


def _ticks(seconds: float) -> Iterator[int]:
    started = time.monotonic()
    for number in range(int(seconds // SAMPLE_EVERY_S) + 1):
        time.sleep(max(0.0, started + number * SAMPLE_EVERY_S - time.monotonic()))
        yield number


@contextmanager
def open_deployment(policy: ConsumerScalingPolicy) -> Iterator[Callable[[GroupSample], GroupSample]]:
    """Give the way to complete a sample by its Deployment; without ``spec.kubernetes`` samples stay as they are.

    A Deployment that cannot be read is among the sample's problems; one that is not there is the policy's mistake:
    ``UnknownNameError``.
    """
    wanted = policy.spec.kubernetes
    if wanted is None:
        yield lambda sample: sample
        return
    from planner.sources.kubernetes import KubernetesApi, read_workload  # noqa: PLC0415  needs the kubernetes extra

    namespace, name = policy.metadata.namespace, policy.spec.scale_target_ref.name

    def complete(sample: GroupSample) -> GroupSample:
        try:
            return replace(sample, deployment=read_workload(api, namespace, name, sample.at))
        except OutOfReachError as error:
            problem = f"Deployment {namespace}/{name} was not read: {error}"
            return replace(sample, problems=(*sample.problems, problem))

    with KubernetesApi.connect(wanted.kubeconfig_file, wanted.context) as api:
        yield complete


def open_group(source: Source) -> AbstractContextManager[Look]:
    """Return a context that holds the connections and gives the way to look at the group."""
    return _open_kafka(source) if isinstance(source, KafkaSource) else _open_rocketmq(source)


@contextmanager
def _open_rocketmq(source: RocketMQSource) -> Iterator[Look]:
    from planner.sources.rocketmq import RocketMQAdmin, Tls, observe_group  # noqa: PLC0415  only this system needs it

    if source.credentials_file is not None:
        raise BadInputError(f"group {source.group}: field spec.source.credentialsFile is not built yet: remove it")
    spec = source.tls
    tls = Tls(spec.ca_file, spec.verify, spec.verify_names, spec.certificate_file, spec.key_file) if spec else None
    with RocketMQAdmin(source.name_servers, tls=tls) as admin:
        yield lambda at: observe_group(admin, cluster=source.cluster, group=source.group, topics=source.topics, at=at)


@contextmanager
def _open_kafka(source: KafkaSource) -> Iterator[Look]:
    from planner.sources.kafka import KafkaAdmin, KafkaSettings, observe_group  # noqa: PLC0415  needs the kafka extra

    settings = KafkaSettings.read(source.properties_file) if source.properties_file else None
    with KafkaAdmin(source.bootstrap_servers, settings=settings) as admin:
        yield lambda at: observe_group(admin, cluster=source.cluster, group=source.group, topics=source.topics, at=at)
