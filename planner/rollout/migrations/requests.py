"""What a person asks for: one migration with its arguments, checked only as far as is possible without the group."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from planner.rollout.template import TemplateChange

LARGEST_FIGURE = 1e15


@dataclass(frozen=True, slots=True)
class Variable:
    """The environment variable that the consumers take ``partition.assignment.strategy`` from."""

    container: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest:
    """A changed template for all pods; ``surge`` are started at once, ``None`` for as many as cost least."""

    kind: Literal["update"] = "update"
    change: TemplateChange
    surge: int | None = None

    def __post_init__(self) -> None:
        if self.surge is not None and self.surge < 1:
            raise ValueError(f"surge to be 1 or more, as no consumer stops before another started, not {self.surge}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyRequest:
    """Another RocketMQ allocation strategy, which ``change`` brings; ``new_group`` lets a second group be weighed.

    ``options`` are its parameters, spelt as ``planner allocate`` takes them. Under ``MACHINE_ROOM_NEARBY`` all new
    members are in ``room``.
    """

    kind: Literal["strategy"] = "strategy"
    to: str
    options: dict[str, Any] = field(default_factory=dict)
    change: TemplateChange
    green: str
    new_group: str | None = None
    room: str | None = None


ALL_MESSAGES = "*"
"""The tags of a subscription to all messages of its topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRequest:
    """Other topics, which ``change`` brings: ``to`` has the tags of each, ``*`` for all messages, as Kafka has it.

    Without ``green`` members come with them one by one; with it all stop before that Deployment starts, and
    ``new_group`` lets a second group be weighed.
    """

    kind: Literal["subscription"] = "subscription"
    to: dict[str, str]
    change: TemplateChange
    green: str | None = None
    new_group: str | None = None

    def __post_init__(self) -> None:
        if not self.to or not all(self.to) or not all(self.to.values()):
            raise ValueError("at least one topic, each with its tags, or * for all messages")
        if self.new_group is not None and self.green is None:
            raise ValueError("a green Deployment beside the new group, whose consumers it runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameRequest:
    """Another name for the group, which ``change`` brings."""

    kind: Literal["rename"] = "rename"
    to: str
    change: TemplateChange
    green: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelocateRequest:
    """All consumers to another Deployment, on other nodes or with another template; ``room`` is where they are then."""

    kind: Literal["relocate"] = "relocate"
    change: TemplateChange
    green: str
    room: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRequest:
    """The group to another cluster, whose address ``change`` brings; the old cluster is drained."""

    kind: Literal["cluster"] = "cluster"
    to: str
    change: TemplateChange
    green: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetMessages:
    """What brokers say, at ``at``, that a reset means: how many of the messages that they keep come again and are left
    out, and the age of the oldest of each in seconds; ``unknowns`` name in half sentences what they do not say."""

    at: datetime
    repeated: int
    skipped: int
    oldest_repeated_s: float | None = None
    oldest_skipped_s: float | None = None
    unknowns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        figures = (self.repeated, self.skipped, self.oldest_repeated_s or 0.0, self.oldest_skipped_s or 0.0)
        if self.at.tzinfo is None or not all(0 <= figure < LARGEST_FIGURE for figure in figures):
            raise ValueError(f"a time with its zone, and counts and ages from 0 to below {LARGEST_FIGURE:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetRequest:
    """The group back, or ahead: to the first messages since a time, the earliest, the latest, or one queue's offset.

    With ``topic`` or ``queue`` (``orders/broker-a/3``, Kafka ``orders/3``) all other queues keep their offsets.
    ``brokers`` is what the brokers said of it, where somebody asked them.
    """

    kind: Literal["reset"] = "reset"
    to: datetime | Literal["earliest", "latest"] | int
    topic: str | None = None
    queue: str | None = None
    brokers: ResetMessages | None = None

    def __post_init__(self) -> None:
        if isinstance(self.to, datetime) and self.to.tzinfo is None:
            raise ValueError(f"a time to come with its zone, not {self.to.isoformat()}")
        if isinstance(self.to, int) and (self.queue is None or self.to < 0):
            raise ValueError("an offset to be 0 or more and to stand beside its queue, as no two queues share one")
        if self.topic is not None and self.queue is not None:
            raise ValueError("a topic or a queue, not both: a queue's name begins with its topic")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandRequest:
    """``queues`` of a topic on every broker (Kafka: partitions in all), and so many consumers for them."""

    kind: Literal["expand"] = "expand"
    topic: str
    queues: int
    consumers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkRequest:
    """``queues`` of a RocketMQ topic on every broker, fewer than it has."""

    kind: Literal["shrink"] = "shrink"
    topic: str
    queues: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorRequest:
    """Another Kafka assignor: in rolls by ``variable``, or all at once in Deployment ``green`` with ``change``."""

    kind: Literal["assignor"] = "assignor"
    to: str
    variable: Variable | None = None
    change: TemplateChange | None = None
    green: str | None = None

    def __post_init__(self) -> None:
        in_rolls = self.variable is not None
        in_a_window = self.change is not None and self.green is not None
        if in_rolls == in_a_window or (in_rolls and (self.change or self.green)):
            raise ValueError(
                "an assignor to come in rolls, by its variable, or in a window, by a change and a green Deployment: one"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerProtocolRequest:
    """Kafka's consumer protocol (KIP-848), which ``change`` brings, with the server's assignor ``to``."""

    kind: Literal["consumerProtocol"] = "consumerProtocol"
    change: TemplateChange
    to: str = "uniform"


Request = (
    UpdateRequest
    | StrategyRequest
    | SubscriptionRequest
    | RenameRequest
    | RelocateRequest
    | ClusterRequest
    | ResetRequest
    | ExpandRequest
    | ShrinkRequest
    | AssignorRequest
    | ConsumerProtocolRequest
)
