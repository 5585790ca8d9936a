"""Which assignor a Kafka group runs: by the coordinator's and the members' word, else by who owns what.

``range`` and ``roundrobin`` follow from members and partitions alone, so they are compared with ownership exactly. The
sticky ones and the server's ``uniform`` go by what members owned before: ownership can be consistent with them or not.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner.allocation.kafka import ASSIGNORS, Member, Request, assign
from planner.allocation.kafka.names import NO_GENERATION
from planner.errors import BadInputError
from planner.inference.explanation import Evidence, Explanation, Freedom, Inference, MemberExplanation, Refuted
from planner.model.membership import KafkaMember, kafka_members
from planner.model.queues import TopicPartition
from planner.model.samples import GroupSample, KafkaGroup
from planner.snapshot.strategy import observed_assignor

POSITIONAL = ("range", "roundrobin")
STICKY = ("sticky", "cooperative-sticky")
SERVER_SIDE = ("range-server", "uniform")

Assigned = Mapping[str, frozenset[TopicPartition]]


@dataclass(frozen=True, slots=True)
class PartitionObservation:
    """One observation of one Kafka group: partitions of each topic, members, and what the coordinator says where it was
    asked.

    ``racks`` are those of each partition's replicas, by topic, where they are known. Where no member shows its
    subscription, all are taken to subscribe to all of ``partitions``.
    """

    partitions: Mapping[str, int]
    members: tuple[KafkaMember, ...]
    group: KafkaGroup | None = None
    racks: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)

    @property
    def owned(self) -> Assigned:
        """What each member says it owns; those that do not report it are left out."""
        return {member.member_id: frozenset(member.owned) for member in self.members if member.owned is not None}

    @property
    def subscriptions(self) -> Mapping[str, tuple[str, ...]]:
        """The topics of each member."""
        everything = tuple(sorted(self.partitions))
        return {member.member_id: everything if member.topics is None else member.topics for member in self.members}

    @property
    def is_whole(self) -> bool:
        """True when every member reports what it owns."""
        return len(self.owned) == len(self.members) > 0


def partition_observation_of(sample: GroupSample) -> PartitionObservation:
    """Return what the sample of a Kafka group says of partitions, members and coordinator."""
    routes = sample.routes.partitions
    counts = Counter(route.partition.topic for route in routes)
    racks: dict[str, list[Sequence[str]]] = {topic: [] for topic in counts}
    for route in routes:
        racks[route.partition.topic].append(route.racks)
    known = {topic: lists for topic, lists in racks.items() if any(any(names) for names in lists)}
    return PartitionObservation(dict(counts), kafka_members(sample.members), sample.kafka, known)


def infer_assignor(observations: Sequence[PartitionObservation]) -> Inference:
    """Return every assignor that explains the observations of one group, newest first, or is consistent with them.

    An assignor that the coordinator names is the only one tried. A sticky one is compared with the observation before,
    as far as there is one.
    """
    evidence = _evidence(observations)
    start = Inference("kafka", evidence, members=_lists(observations))
    if not observations:
        return start
    name, custom = _named_assignor(observations[0])
    start = replace(start, named=(name,) if name else (), custom=(custom,) if custom else ())
    if not evidence.queues_observed:
        return start
    verdicts = [(assignor, _wrong(assignor, observations)) for assignor in _candidates(observations[0], name)]
    explanations = [_explanation(assignor, observations, evidence) for assignor, wrong in verdicts if wrong is None]
    return replace(
        start,
        explanations=tuple(sorted(explanations, key=lambda assignor: assignor.freedom)),
        refuted=tuple(Refuted(assignor, wrong) for assignor, wrong in verdicts if wrong is not None),
    )


def mixed_lists(members: Sequence[KafkaMember]) -> str | None:
    """Return in a sentence how members differ in protocol or in the assignors that they offer, ``None`` if they do not.

    Such a group still runs one assignor, the one that all offer and most prefer; it is what a migration looks like.
    """
    kinds: dict[str, list[str]] = {}
    for member in members:
        offer = ", ".join(member.assignors) if member.assignors else None
        words = " ".join(filter(None, (f"[{offer}]" if offer else None, member.protocol)))
        if words:
            kinds.setdefault(words, []).append(member.member_id)
    if len(kinds) < 2:
        return None
    offers = [f"{words} by {', '.join(sorted(ids))}" for words, ids in sorted(kinds.items())]
    return f"members offer different assignors: {'; '.join(offers)}"


def _lists(observations: Sequence[PartitionObservation]) -> tuple[MemberExplanation, ...]:
    """Return each member with its own list of assignors, where they differ."""
    members = observations[0].members if observations else ()
    if mixed_lists(members) is None:
        return ()
    return tuple(
        MemberExplanation(member.member_id, ", ".join(member.assignors) if member.assignors else None, ())
        for member in members
    )


def _named_assignor(observation: PartitionObservation) -> tuple[str | None, str | None]:
    """Return the assignor that the coordinator names: ours of that name, or somebody's own."""
    name = observed_assignor(observation.group)[0] if observation.group else None
    if name is None or name in ASSIGNORS:
        return name, None
    return None, name


def _candidates(observation: PartitionObservation, named: str | None) -> tuple[str, ...]:
    if named is not None:
        return (named,)
    protocol = observation.group.protocol if observation.group else None
    if protocol == "consumer":
        return SERVER_SIDE
    return (*POSITIONAL, *STICKY, *(() if protocol == "classic" else ("uniform",)))


def _evidence(observations: Sequence[PartitionObservation]) -> Evidence:
    queues = sum(len(frozenset().union(*observation.owned.values())) for observation in observations)
    return Evidence(queues, queues, sum(1 for observation in observations if observation.owned))


def _explanation(name: str, observations: Sequence[PartitionObservation], evidence: Evidence) -> Explanation:
    if name in POSITIONAL or name == "range-server":
        return Explanation(name, ({},), Freedom.NONE, evidence)
    freedom = Freedom.SETS if len(observations) > 1 else Freedom.LISTS
    return Explanation(name, ({},), freedom, evidence, is_exact=False)


def _wrong(name: str, observations: Sequence[PartitionObservation]) -> str | None:
    """Return in a sentence what speaks against the assignor, ``None`` when nothing does."""
    if name in POSITIONAL or name == "range-server":
        reasons = (_misplaced(name, observation) for observation in observations)
    elif name == "random":
        return None
    else:
        before = [*observations[1:], None]
        reasons = (
            _not_sticky(name, observation, older) for observation, older in zip(observations, before, strict=True)
        )
    try:
        return next((wrong for wrong in reasons if wrong is not None), None)
    except BadInputError as error:  # two members with one instance id, say: no assignor answers for such a group
        return f"{name} has no answer for this group: {error}"


def _misplaced(name: str, observation: PartitionObservation) -> str | None:
    """Return the first partition that the assignor gives to somebody else."""
    expected, owned = _assigned(name, observation, {}), observation.owned
    for member_id in sorted(owned):
        for partition in sorted(expected[member_id] ^ owned[member_id]):
            has = [other for other, partitions in owned.items() if partition in partitions]
            given = [other for other, partitions in expected.items() if partition in partitions]
            owner = f"{has[0]} has it" if has else "nobody says it has it"
            return f"{name} would give {partition} to {given[0] if given else 'nobody'}, but {owner}"
    return None


def _not_sticky(name: str, observation: PartitionObservation, before: PartitionObservation | None) -> str | None:
    """Return why the assignor cannot have made this of what was before."""
    if not observation.is_whole:
        return None
    owned = observation.owned
    counts = Counter(partition for partitions in owned.values() for partition in partitions)
    doubled = sorted(partition for partition, owners in counts.items() if owners > 1)
    if doubled:
        return f"{name} gives each partition to one member, but {doubled[0]} has {counts[doubled[0]]} owners"
    loads = [len(partitions) for partitions in owned.values()]
    if len(set(map(frozenset, observation.subscriptions.values()))) == 1 and max(loads) - min(loads) > 1:
        return f"{name} leaves members at most one partition apart, but one owns {max(loads)} and one {min(loads)}"
    if before is None or not before.is_whole or not _follows(observation, before):
        return None
    kept, possible = _kept(owned, before.owned), _kept(_assigned(name, observation, before.owned), before.owned)
    if kept >= possible:
        return None
    return f"{name} would have left {possible} partitions where they were, but only {kept} stayed"


def _follows(observation: PartitionObservation, before: PartitionObservation) -> bool:
    """Return whether the one rebalance between the two is the only one: more of them can move more."""
    now, then = (each.group.epoch if each.group else None for each in (observation, before))
    return now is not None and then is not None and now == then + 1


def _kept(after: Assigned, before: Assigned) -> int:
    return sum(len(partitions & before.get(member, frozenset())) for member, partitions in after.items())


def _assigned(name: str, observation: PartitionObservation, claims: Assigned) -> Assigned:
    """Return what the assignor answers for the members, who own ``claims`` before."""
    topics = observation.subscriptions
    members = tuple(
        Member(
            each.member_id,
            frozenset(topics[each.member_id]),
            each.instance_id,
            each.rack or "",
            tuple((p.topic, p.partition) for p in sorted(claims.get(each.member_id, ())) if _exists(p, observation)),
            1 if each.member_id in claims else NO_GENERATION,
        )
        for each in observation.members
    )
    racks = {topic: tuple(frozenset(each) - {""} for each in lists) for topic, lists in observation.racks.items()}
    assignments = assign(Request(name, observation.partitions, members, racks))["assignments"]
    return {
        member: frozenset(TopicPartition(*each) for each in partitions) for member, partitions in assignments.items()
    }


def _exists(partition: TopicPartition, observation: PartitionObservation) -> bool:
    return partition.partition < observation.partitions.get(partition.topic, 0)
