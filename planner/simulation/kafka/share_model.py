"""``GroupModel`` of a Kafka share group (KIP-932), and which model a Kafka group has."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.errors import BadInputError
from planner.forecast.kafka.request.changes import Change
from planner.forecast.kafka.request.request import ForecastRequest
from planner.model.snapshot import SHARE, GroupSnapshot
from planner.simulation.kafka.model import KafkaModel
from planner.simulation.kafka.share import (
    LOCK_S,
    MOST_LOCKS,
    MOST_MEMBERS,
    MOST_POLLED,
    busiest_fraction,
    most_partitions,
    simulate_share,
)
from planner.simulation.leaving import ByShare, Leaving
from planner.simulation.need import Need
from planner.simulation.outcome import NO_TRANSITION, CandidateOutcome
from planner.text.words import counted

SESSION_S, HEARD_S, DELIVERIES = 45, 6, 5
"""``group.share.session.timeout.ms``, one ``assignment.interval.ms`` and one ``heartbeat.interval.ms``, and
``group.share.delivery.count.limit``, where nobody set them (Kafka 4.3.1)."""


UNTIL_POLLED = "and on until the member that takes it over has done its batch and polls"
"""A member hears at once what it reads from now on, and fetches it by its next poll."""


def kafka_model(snapshot: GroupSnapshot) -> KafkaModel:
    """Return the model of a share group where it is one, else that of a consumer group."""
    is_share = snapshot.strategy == SHARE or any(member.protocol == "share" for member in snapshot.members)
    return ShareModel(snapshot) if is_share else KafkaModel(snapshot)


class ShareModel(KafkaModel):
    """Members share records, so that what they can do together counts, and no partition has an owner."""

    __slots__ = ()

    def shares_messages(self) -> bool:
        """Return true: at every count."""
        return True

    def busiest_fraction(self, members: int) -> float:
        """Return the most that the assignor can give to one of so many members."""
        return busiest_fraction(self.snapshot, members)

    def most_members(self) -> int:
        """Return the broker's default bound, or the present members where it was raised."""
        return max(MOST_MEMBERS, len(self.snapshot.clients))

    def unsupported_strategy(self) -> str | None:
        """Return which assignor it is that nobody here knows, or that members subscribe to different topics."""
        if self.snapshot.strategy != SHARE:
            return f"assignor {self.snapshot.strategy} of the share group is not one that can be foreseen"
        if len({frozenset(member.topics or ()) for member in self.snapshot.members}) > 1:
            return "its members subscribe to different topics, so that not each of them can take every record"
        return None

    def unsettled_queues(self) -> int:
        """Return how many partitions of the members' topics none of them reads yet."""
        members = self.snapshot.members
        read = {partition for member in members for partition in member.owned or ()}
        topics = {topic for member in members for topic in member.topics or ()}
        queues = [state.queue for state in self.snapshot.data_queues]
        return sum(queue not in read and queue.topic in topics for queue in queues)

    def draws_newcomers(self) -> bool:
        """Return false: what a newcomer is called changes no count."""
        return False

    def goes_by_names(self, strategy: str) -> bool:  # noqa: ARG002 - it has one
        """Return true: beyond one member for each partition sizes alone rule out no count."""
        return True

    def simulate(self, members: int, strategy: str, staying: Sequence[str] | None) -> CandidateOutcome:
        """Return what so many members would mean; a share group runs under its own assignor only."""
        if strategy != self.snapshot.strategy:
            raise BadInputError(
                f"strategy: found {strategy}, expected {self.snapshot.strategy}: {self.snapshot.group} is a share "
                "group, and the assignors of consumer groups do not serve it"
            )
        return simulate_share(self.snapshot, members, staying)

    def leaving(self) -> Leaving:
        """Return that no stop moves a partition: none has an owner."""
        members = self.snapshot.clients
        return ByShare(members, np.zeros(len(members), dtype=np.intp), 0, has_quota=False)

    def cost_by_rule(self, outcome: CandidateOutcome) -> CandidateOutcome:
        """Return the outcome with the bounds of what the change costs, as sentences: nothing of it is forecast."""
        stopped = len(self.snapshot.clients) - outcome.members
        if not stopped:
            return replace(outcome, transition=NO_TRANSITION)
        costs = _costs_of_stop(stopped, outcome, len(self.snapshot.data_queues)) if stopped > 0 else _costs_of_start()
        return replace(outcome, unknowns=(*outcome.unknowns, *costs))

    def request(
        self,
        outcome: CandidateOutcome,  # noqa: ARG002 - whatever the change
        end: int,  # noqa: ARG002
        change: Change | None = None,  # noqa: ARG002
        producers: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> ForecastRequest:
        """Raise ``BadInputError``: what changes of share groups cost has no forecast."""
        raise BadInputError(f"{self.snapshot.group} is a share group, and its changes have no forecast")

    def instead_of_pods(self, need: Need) -> None:  # noqa: ARG002 - whatever it is
        """Return ``None``: members count, whichever process runs them."""
        return


def _costs_of_start() -> Iterator[str]:
    yield (
        f"how long a partition stands whose reader changes: 0 to {HEARD_S} s, until both have heard of it. Nothing "
        "comes twice: what a member has acquired stays with it"
    )


def _costs_of_stop(stopped: int, outcome: CandidateOutcome, partitions: int) -> Iterator[str]:
    members = counted(stopped, "member")
    records = f"{most_partitions(partitions, outcome.members + stopped) * MOST_LOCKS:,} records"
    yield (
        f"what the stop of {members} costs: each may have acquired up to {records}. A member that closes gives "
        f"back at once what it has not acknowledged, and what its listener had done of that is done twice: clients "
        f"acknowledge by the next poll or by a commit, not as they close, so the last batch comes again whole, up to "
        f"{MOST_POLLED} records and the rest of a producer's batch, unless the member commits it before it closes "
        f"(commitSync). A partition that no other member reads stands 0 to {HEARD_S} s, {UNTIL_POLLED}"
    )
    yield (
        f"whether they are killed before that: then their records come again as the broker sees their connections "
        f"close, or {LOCK_S} s later at most (group.share.record.lock.duration.ms) where it does not. Those of a "
        f"partition that no other member reads come again with it: it stands up to {SESSION_S + HEARD_S} s "
        f"(group.share.session.timeout.ms), {UNTIL_POLLED}"
    )
    yield (
        f"how often records were delivered before: each that comes again uses up one of {DELIVERIES} deliveries "
        "(group.share.delivery.count.limit), also where no listener had seen it yet, and after the last one the broker "
        "gives it up"
    )
