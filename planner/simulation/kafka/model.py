"""``GroupModel`` of a Kafka group."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from planner.errors import BadInputError
from planner.forecast.common.rolling_update import roll
from planner.forecast.kafka.request.changes import (
    Change,
    Join,
    Leave,
    Member,
    PartitionCount,
    Restart,
    RollingUpdate,
)
from planner.forecast.kafka.request.completion import checked
from planner.forecast.kafka.request.request import ForecastRequest
from planner.model.membership import KafkaMember
from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot
from planner.simulation.kafka import request
from planner.simulation.kafka.mixed_partitions import do_members_differ, some_new_members
from planner.simulation.kafka.partitions import (
    POSITIONAL,
    STICKY,
    fresh_partition_owners,
    leaving_partitions,
    simulate_partitions,
    topic_sizes,
    unsettled_partitions,
    useful_sizes,
    why_not_simulated,
)
from planner.simulation.kafka.process_members import more_members
from planner.simulation.leaving import Leaving
from planner.simulation.need import Need
from planner.simulation.outcome import CandidateOutcome


@dataclass(frozen=True, slots=True)
class KafkaModel:
    """One party assigns all partitions to the members, which own whole partitions always."""

    compared: ClassVar[tuple[str, ...]] = ("range", "cooperative-sticky")

    snapshot: GroupSnapshot

    def shares_messages(self) -> bool:
        """Return false: members of a consumer group share partitions out."""
        return False

    def busiest_fraction(self, members: int) -> float | None:  # noqa: ARG002 - so it is for any number
        """Return ``None``: members share no messages."""
        return None

    def most_members(self) -> int | None:
        """Return ``None``: ``group.max.size`` bounds nothing by default."""
        return None

    def can_compute(self) -> bool:
        """Return whether the assignor's answer for other members is known."""
        return self.unsupported_strategy() is None

    def unsupported_strategy(self) -> str | None:
        """Return in a sentence what is not known of the assignor or of a newcomer; ``None`` where all is."""
        return why_not_simulated(self.snapshot, self.snapshot.strategy or "")

    def unsettled_queues(self) -> int | None:
        """Return how many partitions a settled group would own otherwise."""
        return unsettled_partitions(self.snapshot, self.snapshot.strategy or "")

    def divided_sizes(self, strategy: str | None) -> tuple[int, ...]:
        """Return each topic's partitions under ``range`` and where the assignor is unknown, else all together."""
        return topic_sizes(self.snapshot) if strategy is None else useful_sizes(self.snapshot, strategy)

    def draws_newcomers(self) -> bool:
        """Return whether members differ in topics or racks, so that it counts whom a newcomer is like."""
        return do_members_differ(self.snapshot, self.snapshot.strategy or "")

    def goes_by_names(self, strategy: str) -> bool:
        """Return whether members differ in topics or racks; else sizes follow from their count, whatever their ids."""
        return do_members_differ(self.snapshot, strategy)

    def why_no_more(self, strategy: str) -> None:  # noqa: ARG002 - so it is under every assignor
        """Return ``None``: what a newcomer cannot be is refused for every count (``unsupported_strategy``)."""
        return

    def simulate(self, members: int, strategy: str, staying: Sequence[str] | None) -> CandidateOutcome:
        """Return what so many members would mean."""
        return simulate_partitions(self.snapshot, members, strategy, staying)

    def fresh_owners(self, clients: Sequence[str]) -> Mapping[Queue, str | None]:
        """Return one answer of the assignor for members that subscribe to every topic."""
        return fresh_partition_owners(self.snapshot, clients)

    def fresh_unknowns(self) -> tuple[str, ...]:
        """Return nothing: how many partitions each owns follows from the count."""
        return ()

    def leaving(self) -> Leaving:
        """Return what the stop of any members moves."""
        return leaving_partitions(self.snapshot, self.snapshot.strategy or "")

    def cost_by_rule(self, outcome: CandidateOutcome) -> CandidateOutcome | None:  # noqa: ARG002 - of no change
        """Return ``None``: forecasts say what every change costs."""
        return None

    def request(
        self,
        outcome: CandidateOutcome,
        end: int,
        change: Change | None = None,
        producers: Mapping[str, str] | None = None,  # noqa: ARG002 - they change nothing that is forecast
    ) -> ForecastRequest:
        """Return the forecast's request, by what the policy states of the clients."""
        return request.request(outcome, self.snapshot, end, change)

    def requests(self, outcome: CandidateOutcome, end: int) -> list[ForecastRequest]:
        """Return one request for each of a few sets of newcomers where members differ in topics or racks."""
        known = self.request(outcome, end)
        if outcome.drawn is None:
            return [known]
        return [
            checked(replace(known, change=Join(_joining(members))))
            for members in some_new_members(self.snapshot, outcome.members - len(self.snapshot.members))
        ]

    def lists_to_write(self, members: int) -> None:  # noqa: ARG002 - so it is for any number
        """Return ``None``: no list says who owns what."""
        return

    def strategies(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the assignors of clients and servers; none has options that the answer rests on."""
        return ((name, {}) for name in (*sorted(POSITIONAL), *sorted(STICKY)))

    def drawn_anew(self, strategy: str, futures: Sequence[tuple[GroupSnapshot, int]]) -> None:  # noqa: ARG002
        """Return ``None``: sizes follow from the count of members, whatever their ids."""
        return

    def assumptions(self, outcome: CandidateOutcome) -> Iterator[str]:
        """Yield what the forecast takes for granted."""
        return request.assumed(outcome, self.snapshot)

    def leave_change(self, clients: Sequence[str], how: str) -> Leave:
        """Return the change by which these members end."""
        return Leave(tuple(clients), how)

    def restart_change(self, clients: Sequence[str], how: str, interval_s: float, stagger_s: float) -> Restart:
        """Return the change by which these members end and start again."""
        return Restart(tuple(clients), how, interval_s, stagger_s)

    def roll_change(self, surge: int, unavailable: int, **seconds: float) -> RollingUpdate:
        """Return the change by which a Deployment replaces the pods of all members."""
        return RollingUpdate((), roll(len(self.snapshot.members), surge, unavailable, start_s=0.0, **seconds))

    def with_topics(self, change: RollingUpdate, topics: Iterable[str]) -> RollingUpdate:
        """Return the roll whose new members subscribe to these topics."""
        return replace(change, members=(Member(None, None, "", frozenset(topics)),) * len(self.snapshot.members))

    def broker_loss(self, broker: str) -> None:
        """Raise ``BadInputError``: who leads a partition, no snapshot has."""
        raise BadInputError(f"the snapshot does not have which partitions {broker} leads")

    def growth_changes(self, topic: str, each: int) -> list[PartitionCount]:
        """Return the one change: partitions are raised for the whole topic."""
        return [PartitionCount(topic, each)]

    def growth_question(self, topic: str, each: int) -> str:
        """Return the question for the topic's partitions."""
        return f"Does topic {topic} have {each} partitions now?"

    def shrink_changes(self, topic: str, each: int) -> list[PartitionCount]:  # noqa: ARG002 - so it is for any number
        """Raise ``BadInputError``: Kafka takes no partition away."""
        raise BadInputError(
            f"topic {topic} is Kafka's, which takes no partition away: make a topic with fewer partitions beside it, "
            "and have producers write to that"
        )

    def shrink_questions(self, topic: str, each: int, given_up: str) -> tuple[str, str]:  # noqa: ARG002
        """Raise ``BadInputError`` as ``shrink_changes`` does."""
        raise BadInputError(f"topic {topic} is Kafka's, which takes no partition away")

    def instead_of_pods(self, need: Need) -> str | None:
        """Return what more members in each process would do; ``None`` where nobody knows how many a pod runs."""
        return more_members(self.snapshot, need, self._most_owned)

    def _most_owned(self, members: int) -> int | None:
        """Return how many partitions the busiest of so many members owns, ``None`` where that cannot be computed."""
        if self.snapshot.strategy is None or not self.can_compute():
            return None
        try:
            return self.simulate(members, self.snapshot.strategy, None).largest_share
        except BadInputError:
            return None

    def new_group_conditions(self) -> Iterator[str]:
        """Yield nothing: all that a group has are its offsets."""
        return iter(())


def _joining(members: Sequence[KafkaMember]) -> tuple[Member, ...]:
    return tuple(
        Member(member.member_id, None, member.rack or "", frozenset(member.topics or ())) for member in members
    )
