"""What may happen to a Kafka group, one class a kind."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.allocation import fields
from planner.errors import BadInputError
from planner.forecast.common.request_fields import Version
from planner.forecast.common.rolling_update import Rolling


@dataclass(frozen=True, slots=True)
class Member:
    """One member: its id (``None``: not known yet), its ``group.instance.id``, rack and topics, and what it owns.

    ``owned`` is ``None`` where the request does not say it.
    """

    id: str | None
    instance_id: str | None
    rack: str
    topics: frozenset[str]
    owned: tuple[tuple[str, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """These members start, one every ``stagger_s`` seconds (0: all at once)."""

    members: tuple[Member, ...]
    stagger_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Leave:
    """These members end, one every ``stagger_s`` seconds: closed, killed, or gone without a word."""

    members: tuple[str, ...]
    how: str
    stagger_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Restart:
    """These members end one after the other, each starting again ``interval_s`` later.

    ``stagger_s`` lies between two ends: by default, the next one ends when the one before starts again.
    """

    members: tuple[str, ...]
    how: str
    interval_s: float
    stagger_s: float


@dataclass(frozen=True, slots=True)
class Freeze:
    """These members stand still for ``for_s`` seconds and then go on as if nothing had been."""

    members: tuple[str, ...]
    for_s: float


@dataclass(frozen=True, slots=True)
class CutOff:
    """The network between these members and all brokers is down for ``for_s`` seconds."""

    members: tuple[str, ...]
    for_s: float


@dataclass(frozen=True, slots=True)
class RollingUpdate:
    """A Deployment replaces the pods of all members by new ones, whose members these are.

    ``to``: the assignor that new ones ask for. One of the server's comes to a classic group by the consumer protocol;
    one of the clients' must be in the list of every old member already. ``beside``: a clients' assignor that new ones
    list behind the group's own.
    """

    members: tuple[Member, ...]
    rolling: Rolling
    to: str | None = None
    beside: str | None = None


@dataclass(frozen=True, slots=True)
class Upgrade:
    """These members are closed in order, one every ``interval_s``, and start at once with another release."""

    to: Version
    members: tuple[str, ...]
    interval_s: float


@dataclass(frozen=True, slots=True)
class BlueGreen:
    """Another group takes over: it gets this one's offsets at ``clone_s``, and its members start at ``start_s``.

    All members of this one are closed at ``stop_s``.
    """

    to_group: str
    members: tuple[Member, ...]
    clone_s: float
    stop_s: float
    start_s: float


@dataclass(frozen=True, slots=True)
class BrokerDown:
    """This broker dies; others take over what it led."""

    broker: str


@dataclass(frozen=True, slots=True)
class BrokerUp:
    """This broker comes back and in time leads again what it prefers to lead."""

    broker: str


@dataclass(frozen=True, slots=True)
class PartitionCount:
    """A topic has so many partitions from now on."""

    topic: str
    partitions: int


@dataclass(frozen=True, slots=True)
class StrategyChange:
    """These members are closed in order, one every ``interval_s``, and start at once with another assignor."""

    to: str
    members: tuple[str, ...]
    interval_s: float


@dataclass(frozen=True, slots=True)
class SubscriptionChange:
    """These members are closed in order, one every ``interval_s``, and start at once with these topics."""

    topics: frozenset[str]
    members: tuple[str, ...]
    interval_s: float


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """This topic is created, and the pattern of every member matches it.

    ``by_broker``: the broker evaluates the pattern (``subscribe(SubscriptionPattern)``, KIP-848), not each client.
    """

    topic: str
    by_broker: bool = False


OfMembers = Leave | Restart | Freeze | CutOff | Upgrade | StrategyChange | SubscriptionChange
"""What happens to members that are there, by name."""
Change = OfMembers | Join | RollingUpdate | BlueGreen | BrokerDown | BrokerUp | PartitionCount | TopicCreated


IDS = (("id", "id"), ("instance_id", "instance id"))
"""What no two members of a group share: the field, and what messages call it."""


def refuse_present(
    joining: Sequence[Member], members: Sequence[Member], apart: Sequence[tuple[str, str]] = IDS
) -> None:
    """Refuse newcomers that do not differ by these fields from members that are in the group."""
    for name, what in apart:
        present = {getattr(member, name) for member in members} - {None}
        for newcomer in joining:
            if getattr(newcomer, name) in present:
                shown = fields.shown(getattr(newcomer, name))
                raise BadInputError(f"change.clients: {shown} is in the group already, expected a new {what}")


def newcomers(change: Change) -> tuple[Member, ...]:
    """Return the members that a change brings, in the order in which they start."""
    return change.members if isinstance(change, Join | RollingUpdate | BlueGreen) else ()
