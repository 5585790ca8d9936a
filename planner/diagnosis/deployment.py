"""What the group's Deployment adds: other managers of its replicas, pods that crash, time to stop."""

from collections.abc import Iterator

from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence, topic_sizes, tuning_property
from planner.diagnosis.phrases import some, verb
from planner.model.deployments import Deployment
from planner.snapshot.pods import pod_size
from planner.text.words import counted, duration
from planner.workload import clues_of, join_members

NOT_READ = "no Deployment was read: name it with --deployment (and --namespace, --kubeconfig)"

CRASHES = 2
PER_DAY = 1.0
"""Restarts of containers at least, and per day, before pods are called crash-prone: one alone is an accident."""

UNREGISTER_S = 3.0
"""A stopping client unregisters at each broker, and waits so long for each at most (rocketmq.md 3.10)."""


def other_scalers(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Autoscalers that set the Deployment's replicas by their own rules, and other managers that work against them."""
    deployment = evidence.deployment
    if deployment is None:
        if evidence.members:
            yield Gap(NOT_READ)
        return
    active = deployment.active_autoscalers
    if active is None:
        yield Gap(f"the autoscalers of {deployment.title} could not be read: {some(deployment.problems, 2)}")
        return
    owners = deployment.replica_owners or ()
    by_hand = sorted({owner.manager for owner in deployment.replicas_set_by if owner.subresource != "scale"})
    if len(owners) > 1 or (owners and by_hand):
        others = [*(f"{owner.kind} {owner.name}" for owner in owners), *by_hand]
        yield Symptom(
            severity=Severity.WARNING,
            title=f"{len(others)} of them set the replicas of {deployment.title}: {some(others)}",
            evidence=(
                f"{deployment.replicas} replicas now",
                *(_words(owner.kind, owner.name, owner.desired) for owner in owners),
            ),
            consequence="each undoes what the other has set, and every change is a rebalance of "
            f"{counted(len(evidence.queues), evidence.queue_noun)}",
            advice="leave the count to one of them: take spec.replicas out of the manifest, or remove the autoscaler",
        )
    elif owners:
        yield from _too_wide(evidence, deployment)


def _words(kind: str, name: str, desired: int | None) -> str:
    return f"{kind} {name} wants {desired if desired is not None else 'a count that it does not report'}"


def _too_wide(evidence: GroupEvidence, deployment: Deployment) -> Iterator[Symptom]:
    """One autoscaler that may go beyond what can help."""
    sizes = topic_sizes(evidence.queues).values()
    per_pod = members_per_pod(evidence)
    most = -(-sum(sizes) // per_pod) if per_pod else 0
    for scaler in deployment.active_autoscalers or ():
        if evidence.has_owners and sizes and per_pod and scaler.maximum > most:
            runs = "" if per_pod == 1 else f", each pod runs {counted(per_pod, 'member')}"
            yield Symptom(
                severity=Severity.WARNING,
                title=f"{scaler.kind} {scaler.name} may start {scaler.maximum} pods for "
                f"{counted(sum(sizes), evidence.queue_noun)}",
                evidence=(
                    f"between {scaler.minimum} and {scaler.maximum}; largest topic: "
                    f"{counted(max(sizes), evidence.queue_noun)}{runs}",
                ),
                consequence=f"{scaler.maximum - most} of them would own nothing, and each still rebalances the "
                "group when it comes and goes",
                advice=f"set its maximum to {most} at most",
            )


def members_per_pod(evidence: GroupEvidence) -> int | None:
    """Return how many members each pod runs; ``None`` where nothing shows it, so that pods cannot be counted."""
    deployment, clues = evidence.deployment, tuple(clues_of(member) for member in evidence.members)
    if deployment is None or deployment.pods is None:
        return pod_size(clues, deployment, None, None).members
    pods = {member: pod.name for member, pod in join_members(deployment.pods, clues).pod_of.items()}
    return pod_size(clues, deployment, pods, None).members


def crash_prone(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Containers that restart: each crash is a rebalance without a commit; orderly groups wait for the broker's lock.

    A crashed orderly owner's lock lives on for 40 to 60 s (rocketmq.md 3.7: 61 s and 41.9 s measured).
    """
    deployment = evidence.deployment
    if deployment is None or deployment.pods is None:
        if evidence.members:
            yield Gap(NOT_READ if deployment is None else f"the pods of {deployment.title} could not be read")
        return
    restarts = {pod.name: pod.restarts for pod in deployment.pods if pod.restarts}
    total = sum(restarts.values())
    ages = [
        (evidence.newest.at - pod.started_at).total_seconds() for pod in deployment.pods if pod.started_at is not None
    ]
    days = max(ages, default=0.0) / 86_400
    if total < CRASHES or (days and total / days < PER_DAY):
        return
    orderly = any(member.tuning.orderly for member in evidence.members if member.tuning)
    share = counted(max(1, round(len(evidence.queues) / max(1, len(evidence.members)))), evidence.queue_noun)
    yield Symptom(
        severity=Severity.ERROR if orderly else Severity.WARNING,
        title=f"Pods crash: {counted(total, 'restart')} within {duration(max(ages, default=0.0))}"
        + (", and the group consumes in order" if orderly else ""),
        evidence=(some(f"{pod} {count}" for pod, count in sorted(restarts.items())),),
        consequence=f"each crash stops about {share} for 40 to 61 s, as the broker's lock of a crashed owner has to "
        "expire first"
        if orderly
        else f"each crash moves about {share} twice, and what was not committed comes again",
        advice="find the reason: kubectl logs --previous, OOMKilled, probes",
        about=tuple(restarts),
    )


def short_grace(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Less time to stop than the client takes: SIGKILL comes before offsets and unregistering."""
    deployment = evidence.deployment
    system = evidence.system
    if system.close_limits is not None:
        if evidence.members:
            yield Gap(f"no {system.title} member reports how long it takes to close: {system.close_limits}")
        return
    if deployment is None:
        return
    waits = [tuning_property(member, "awaitTerminationMillisWhenShutdown") for member in evidence.rocketmq_members]
    longest = max((int(wait) for wait in waits if wait and wait.isdigit()), default=0) / 1000
    brokers = len({broker_queues.broker for route in evidence.newest.routes.topics for broker_queues in route.brokers})
    sleeps = max(
        (container.pre_stop.sleep_s or 0 for container in deployment.containers if container.pre_stop), default=0
    )
    needed = sleeps + 2 * longest + UNREGISTER_S * brokers
    if deployment.grace_s >= needed:
        return
    yield Symptom(
        severity=Severity.WARNING,
        title=f"Pods may be killed before they have stopped: {duration(deployment.grace_s)} of grace",
        evidence=(
            f"a stop may take {duration(needed)}: preStop {duration(sleeps)}, twice the client's wait of "
            f"{duration(longest)}, {duration(UNREGISTER_S)} for each of {counted(brokers, 'broker')}",
        ),
        consequence="a killed client commits nothing and does not leave: its messages come again as after a crash",
        advice=f"set terminationGracePeriodSeconds to {needed:.0f} or more, or the wait to less",
    )


def pods_without_member(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """More ready pods than members: a pod is there and consumes nothing."""
    deployment = evidence.deployment
    if deployment is None or not deployment.is_observed or deployment.ready <= len(evidence.members):
        return
    if any(len(sample.members) >= deployment.ready for sample in evidence.samples):
        return
    missing = deployment.ready - len(evidence.members)
    yield Symptom(
        severity=Severity.WARNING,
        title=f"{counted(deployment.ready, 'pod')} {verb(deployment.ready, 'is', 'are')} ready, "
        f"{counted(len(evidence.members), 'member')} {verb(len(evidence.members), 'is', 'are')} in the group",
        evidence=(str(deployment.workload),),
        consequence=f"{counted(missing, 'pod')} {verb(missing, 'consumes', 'consume')} nothing, or two share an id",
        advice="see the logs of the pods that did not join, and tie readiness to the consumer's start",
    )
