"""What may happen to a group, one class a kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.allocation import fields
from planner.allocation.strategy import Strategy
from planner.errors import BadInputError
from planner.forecast.common.request_fields import Version
from planner.forecast.common.rolling_update import Rolling

CUT = "cut"
"""How the process of a client that is cut off ends, besides the ways of every system."""


@dataclass(frozen=True, slots=True)
class Client:
    """One member: its id (``None``: not known yet), its consume threads, and whether it consumes in order."""

    id: str | None
    threads: int
    orderly: bool


@dataclass(frozen=True, slots=True)
class Join:
    """These clients start, one every ``stagger_s`` seconds (0: all at once)."""

    clients: tuple[Client, ...]
    stagger_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Leave:
    """These clients end, one every ``stagger_s`` seconds: shut down, killed (TCP reset), or gone without a word."""

    clients: tuple[str, ...]
    how: str
    stagger_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Restart:
    """These clients end one after the other, each starting again ``interval_s`` later.

    ``stagger_s`` lies between two ends: by default, the next one ends when the one before starts again.
    """

    clients: tuple[str, ...]
    how: str
    interval_s: float
    stagger_s: float


@dataclass(frozen=True, slots=True)
class Freeze:
    """These clients stand still for ``for_s`` seconds and then go on as if nothing had been."""

    clients: tuple[str, ...]
    for_s: float


@dataclass(frozen=True, slots=True)
class Partition:
    """The network between these clients and all brokers and name servers is down for ``for_s`` seconds.

    Where ``brokers`` names some, only these are out of reach.
    """

    clients: tuple[str, ...]
    for_s: float
    brokers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Upgrade:
    """These clients are shut down in order, one every ``interval_s``, and start at once with another release."""

    to: Version
    clients: tuple[str, ...]
    interval_s: float


@dataclass(frozen=True, slots=True)
class BlueGreen:
    """Another group takes over: it gets this one's offsets at ``clone_s``, and its clients start at ``start_s``.

    All clients of this one are shut down at ``stop_s``.
    """

    to_group: str
    clients: tuple[Client, ...]
    clone_s: float
    stop_s: float
    start_s: float


@dataclass(frozen=True, slots=True)
class RollingUpdate:
    """A Deployment replaces the pods of all clients by new ones, whose clients these are."""

    clients: tuple[Client, ...]
    rolling: Rolling


@dataclass(frozen=True, slots=True)
class BrokerDown:
    """This broker dies; the name server sees its connection close."""

    broker: str


@dataclass(frozen=True, slots=True)
class BrokerUp:
    """This broker, whose queues stand in the request, is started; nobody consumed from it before."""

    broker: str


@dataclass(frozen=True, slots=True)
class QueueCount:
    """A topic has so many queues on one broker from now on."""

    topic: str
    broker: str
    read_queues: int
    write_queues: int


@dataclass(frozen=True, slots=True)
class StrategyChange:
    """These clients are shut down in order, one every ``interval_s``, and start at once with another strategy."""

    to: Strategy
    clients: tuple[str, ...]
    interval_s: float


Tags = frozenset[str]
"""The tags that a subscription names, none of them for ``*``: all messages."""


@dataclass(frozen=True, slots=True)
class SubscriptionChange:
    """These clients are shut down in order, one every ``interval_s``, and start at once with another subscription.

    ``before`` is what all clients subscribe to, by topic, ``to`` what these do then.
    """

    before: Mapping[str, Tags]
    to: Mapping[str, Tags]
    clients: tuple[str, ...]
    interval_s: float


OfMembers = Leave | Restart | Freeze | Partition | Upgrade | StrategyChange | SubscriptionChange
"""Changes that name members of the group."""

Change = OfMembers | Join | RollingUpdate | BlueGreen | BrokerDown | BrokerUp | QueueCount


def refuse_present(clients: Sequence[Client], members: Sequence[Client]) -> None:
    """Refuse newcomers that are in the group already."""
    present = {client.id for client in members}
    for client in clients:
        if client.id in present:
            raise BadInputError(f"change.clients: {fields.shown(client.id)} is in the group already, expected a new id")


def newcomers(change: Change) -> tuple[Client, ...]:
    """Return the clients that a change brings, in the order in which they start."""
    return change.clients if isinstance(change, Join | RollingUpdate | BlueGreen) else ()
