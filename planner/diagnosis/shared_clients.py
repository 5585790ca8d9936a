"""Several groups behind one client: whatever happens to one of them has the others rebalance, too."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.phrases import some, verb
from planner.model.membership import OtherGroup
from planner.text.words import counted


def with_shared_clients(evidences: Sequence[GroupEvidence]) -> list[GroupEvidence]:
    """Return the evidence on each group with the other groups of its clients, by equal client ids of one cluster.

    Those count that were read together, and those of which brokers listed the members beside a group's own. Only of
    systems in which one client serves several groups (``System.shared_client``); ids of Kafka's are mere names.
    """
    groups_of: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for evidence in evidences:
        for client in evidence.clients:
            groups_of[_key(evidence, client)].append(evidence.group)
    return [replace(evidence, others=tuple(_others(evidence, groups_of))) for evidence in evidences]


def _key(evidence: GroupEvidence, client: str) -> tuple[str, str, str]:
    return evidence.newest.system, evidence.newest.cluster, client


def _others(evidence: GroupEvidence, groups_of: defaultdict[tuple[str, str, str], list[str]]) -> Iterator[OtherGroup]:
    if evidence.system.shared_client is None:
        return
    shared: defaultdict[str, set[str]] = defaultdict(set)
    for client in evidence.clients:
        for group in groups_of[_key(evidence, client)]:
            if group != evidence.group:
                shared[group].add(client)
    for other in evidence.newest.rocketmq.other_groups if evidence.newest.rocketmq else ():
        shared[other.group].update(other.clients)
    for group, clients in sorted(shared.items()):
        yield OtherGroup(group, tuple(sorted(clients)))


def shared_clients(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Client ids that other groups have, too: one ``MQClientInstance`` with one thread that rebalances for all of them.

    ``MQClientInstance#doRebalance`` goes through all groups of its consumer table, and a notification of one group
    wakes it (``ClientRemotingProcessor#notifyConsumerIdsChanged``, 4.9.8 and 5.5.0).
    """
    if not evidence.others or evidence.system.shared_client is None:
        return
    names = [other.group for other in evidence.others]
    clients = sorted({client for other in evidence.others for client in other.clients})
    members = counted(len(evidence.members), "member")
    runs = verb(len(clients), "runs", "run")
    yield Symptom(
        severity=Severity.NOTICE,
        title=f"{len(clients)} of {members} also {runs} other groups: {some(names)}",
        evidence=(
            f"the same client ids are members there: {some(clients)}",
            *(f"{counted(len(other.clients), 'id')} in group {other.group}" for other in evidence.others[:3]),
        ),
        consequence=f"{evidence.system.shared_client}: forecasts of one group leave such rebalances out, and a stop of "
        "a pod stops the members of all these groups at once",
        advice="if a Deployment runs them, name the policies in spec.scaleTargetRef.sharedWith: one decision and plan "
        "for all; else give each consumer an instance name of its own (setInstanceName): from client 4.9.0 on each has "
        "one unless the application sets it",
        about=tuple(clients),
    )
