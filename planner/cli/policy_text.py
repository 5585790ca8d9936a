"""A policy as a YAML file with one comment on each field: what ``planner init`` writes."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.documents.policy_spec import DEFAULT_UTILISATION
from planner.documents.source import KafkaSource, RocketMQSource
from planner.model.deployments import DEPLOYMENT
from planner.text.words import counted, queue_noun

if TYPE_CHECKING:
    from planner.cli.target import Target
    from planner.documents.policy import ConsumerScalingPolicy
    from planner.documents.policy_spec import ObjectiveSpec
    from planner.model.samples import GroupSample

COLUMN = 44
"""Comments begin here, or two blanks after a longer field."""


def policy_text(policy: "ConsumerScalingPolicy", sample: "GroupSample", target: "Target | None") -> str:
    """Return the policy as YAML that ``parse_policy`` reads to the same policy, each field with a comment.

    What most people change sooner or later stands there as a comment, with the value to begin with. Without a
    ``target`` the Deployment is made up, and the comment says so.
    """
    return "".join(f"{line}\n" for line in _lines(policy, sample, target))


def _lines(policy: "ConsumerScalingPolicy", sample: "GroupSample", target: "Target | None") -> Iterator[str]:
    spec, count = policy.spec, sum(not queue.is_retry for queue in sample.routes.read_queues)
    queues = counted(count, queue_noun(sample.system))
    yield f"# What is wanted for consumer group {json.dumps(sample.group)}. Every field: docs/policy.md"
    yield f"apiVersion: {policy.api_version}"
    yield f"kind: {policy.kind}"
    yield "metadata:"
    yield _field(2, "name", policy.metadata.name, "the policy's own name")
    yield _field(2, "namespace", policy.metadata.namespace, "where the Deployment is")
    yield "spec:"
    yield from _source(spec.source)
    yield "  scaleTargetRef:"
    if spec.target_kind != DEPLOYMENT:
        yield _field(4, "kind", spec.target_kind, "its pods have numbers: the highest stop first")
    yield _field(4, "name", spec.target_names[0], _of_target(target))
    yield from _kubernetes(policy)
    scaler = target.autoscaler if target else None
    if scaler is not None:
        note = f"{scaler} sets the replicas, from {scaler.minimum} to {scaler.maximum}: without this no plan is made"
        yield _comment(2, "autoscaler: {mode: setBounds}", note)
    yield _field(2, "minReplicas", spec.min_replicas, "never fewer pods")
    yield _field(2, "maxReplicas", spec.max_replicas, f"never more pods; the group has {queues}")
    if spec.members_per_pod is None:
        yield _comment(2, "membersPerPod: 4", "members of the group that each pod runs; seen where pods are read")
    else:
        yield _field(2, "membersPerPod", spec.members_per_pod, "members of the group that each pod runs")
    yield "  objective:"
    yield from _objective(spec.objective)
    if spec.capacity is None:
        yield _comment(2, "capacity: {messagesPerSecond: 50}", "of one consumer, if you know it; learned otherwise")
    else:
        yield "  capacity:"
        yield _field(4, "messagesPerSecond", _plain(spec.capacity.messages_per_second), "of one consumer, as stated")
    yield "  window:"
    yield _field(4, "seconds", spec.window.seconds, "rates are taken from this much of the past")
    yield _field(4, "percentile", _plain(spec.window.percentile), "of its minutes: the rate that is planned for")
    yield "  freshness:"
    yield _field(4, "maxAgeSeconds", _plain(spec.freshness.max_age_seconds), "older data gives no decision")
    yield _field(4, "minCompleteness", spec.freshness.min_completeness, "nor does data with larger holes")
    yield _comment(2, "stabilisation: {seconds: 900}", "rest after a change before consumers are taken away")
    yield "  approval:"
    yield _field(4, "mode", spec.approval.mode, "a person approves each plan; Auto goes by criteria")
    if spec.timing is not None:
        yield "  timing:"
        yield _field(4, "clientVersion", spec.timing.client_version, "supposed: your Java client, or librdkafka 2.12.1")
        yield _field(4, "brokerVersion", spec.timing.broker_version, "assumed: no group reports it")
        yield _comment(4, 'settings: {"session.timeout.ms": 45000}', "where your clients differ from the defaults")


def _objective(objective: "ObjectiveSpec") -> Iterator[str]:
    yield _field(4, "lateAfterSeconds", _plain(objective.late_after_seconds), "a message that waits longer is late")
    yield _field(4, "podStartSeconds", _plain(objective.pod_start_seconds), "until a new consumer works")
    yield _comment(4, f"maxUtilisation: {DEFAULT_UTILISATION}", "a bound besides: of what the busiest consumer can do")
    yield _comment(2, "prices: {lateMinuteSeconds: 3600, movedQueueSeconds: 30}", "the latter higher: fewer changes")


def _of_target(target: "Target | None") -> str:
    """Return what the comment says of the Deployment: the facts that a plan's waits depend on."""
    if target is None:
        return "made up: name the Deployment here"
    facts = target.deployment
    if facts is None:
        return "the Deployment that runs the consumers"
    pods = counted(facts.replicas, "pod")
    return f"the Deployment that runs the consumers: {pods} now, {facts.grace_s} s for a pod to stop"


def _source(source: RocketMQSource | KafkaSource) -> Iterator[str]:
    yield "  source:"
    yield _field(4, "system", source.system, "rocketmq or kafka")
    if isinstance(source, KafkaSource):
        yield _field(4, "bootstrapServers", list(source.bootstrap_servers), "host:port")
        yield _field(4, "cluster", source.cluster, "any name of yours")
    else:
        yield _field(4, "nameServers", list(source.name_servers), "host:port")
        yield _field(4, "cluster", source.cluster, "as the brokers call it")
    yield _field(4, "group", source.group, "the consumer group")
    if isinstance(source, KafkaSource) and source.properties_file is not None:
        yield _field(4, "propertiesFile", str(source.properties_file), "client properties (SASL, TLS)")
    if isinstance(source, RocketMQSource):
        if source.proxies is not None:
            yield _field(4, "proxies", list(source.proxies), "remoting ports: proxies alone list gRPC clients")
        if source.credentials_file is not None:
            yield _field(4, "credentialsFile", str(source.credentials_file), "accessKey and secretKey")
        if source.tls is not None:
            authorities = {"caFile": str(source.tls.ca_file)} if source.tls.ca_file else {}
            yield _field(4, "tls", authorities, "whom to trust; empty: the system's authorities")


def _kubernetes(policy: "ConsumerScalingPolicy") -> Iterator[str]:
    kubernetes = policy.spec.kubernetes
    if kubernetes is None:
        yield _comment(2, "kubernetes: {}", "reads the Deployment, its pods and autoscalers, too")
        return
    access = {"kubeconfigFile": str(kubernetes.kubeconfig_file)} if kubernetes.kubeconfig_file else {}
    label = {"memberLabel": kubernetes.member_label} if kubernetes.member_label else {}
    yield _field(2, "kubernetes", access | label, "reads the Deployment, its pods and autoscalers, too")


def _field(indent: int, name: str, value: object, note: str) -> str:
    # JSON is YAML: one way to write text that a bare YAML word would turn into something else.
    return _with_note(f"{' ' * indent}{name}: {json.dumps(value, ensure_ascii=False)}", note)


def _comment(indent: int, field: str, note: str) -> str:
    return _with_note(f"{' ' * indent}# {field}", note)


def _with_note(text: str, note: str) -> str:
    return f"{text:<{COLUMN - 2}}  # {note}"


def _plain(value: float | None) -> float | int | None:
    """Return whole figures without a decimal point."""
    return int(value) if value is not None and value == int(value) else value
