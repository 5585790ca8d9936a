"""Kafka requests that are refused by name: better no forecast than a wrong one."""

from planner.allocation import fields
from planner.allocation.kafka.assignment import ASSIGNORS
from planner.allocation.kafka.own import find_own
from planner.errors import BadInputError
from planner.forecast.common.changes import check_seconds, refuse_none
from planner.forecast.common.request_fields import MOST_RATE, MOST_SECONDS, Version, number
from planner.forecast.kafka.request.changes import (
    IDS,
    BlueGreen,
    Join,
    OfMembers,
    PartitionCount,
    RollingUpdate,
    StrategyChange,
    SubscriptionChange,
    TopicCreated,
    newcomers,
    refuse_present,
)
from planner.forecast.kafka.request.request import COOPERATIVE, OF_PROTOCOL, ForecastRequest, is_of_clients
from planner.forecast.kafka.request.settings import (
    BIDIRECTIONAL,
    CLASSIC,
    CONSUMER,
    DISABLED,
    DOWNGRADE,
    MIGRATION_POLICY,
    UPGRADE,
)

MOST_PARTITIONS = 20_000
MOST_MEMBERS = 2_000
MOST_LAG = 1e15
MOST_RAISED = 10_000
"""How many partitions a topic may have after a change."""
MOST_CELLS = 20_000_000
_NO_UPGRADE = "the broker knows no such group for its new members (GROUP_ID_NOT_FOUND), who give up"
_NO_DOWNGRADE = {
    UPGRADE: "the group stays one of the consumer protocol, and the server assigns to classic members",
    DISABLED: "the broker refuses classic members (INCONSISTENT_GROUP_PROTOCOL), who give up",
}
"""What happens where the broker's policy forbids the way that the members take, by policy."""


def check_knows_consumer(field: str, value: str, client: Version, broker: Version, *, is_java: bool) -> None:
    """Refuse the consumer protocol where client or broker is older than it (KIP-848)."""
    least = Version(4, 0) if is_java else Version(2, 12)
    for side, version, needed in (("client", client, least), ("broker", broker, Version(4, 0))):
        if version < needed:
            raise BadInputError(f"{field}: found {value} with {side} {version}, expected {needed} or newer")


def refuse_what_has_no_model(request: ForecastRequest) -> None:
    """Raise ``BadInputError`` for members and rolls that the simulation does not cover."""
    if not request.members and not isinstance(request.change, Join):
        raise BadInputError("members: found none, expected at least one member, or a change of kind join")
    change = request.change
    if request.converts:
        _check_conversion(request)
        return
    if request.reverts:
        _check_reversion(request)
        return
    _refuse_subset(request)
    match change:
        case SubscriptionChange():
            _check_subscription(request, change)
        case TopicCreated():
            _check_created(request, change)
        case StrategyChange() | RollingUpdate():
            _check_roll(request, change)


def _check_roll(request: ForecastRequest, change: StrategyChange | RollingUpdate) -> None:
    """Refuse another assignor between which members of a classic group cannot roll."""
    to = request.assignor_after
    if isinstance(change, RollingUpdate) and change.beside is not None:
        to = change.beside
        if request.protocol == CONSUMER or not is_of_clients(to) or to == request.strategy:
            raise BadInputError(
                f"change.beside: found {to} for protocol {request.protocol} and {request.strategy}, expected another "
                f"assignor of clients in a classic group"
            )
    if request.is_java or to == request.strategy:
        return
    if COOPERATIVE in {to, request.strategy}:
        raise BadInputError(
            f"change.{_field_of(change)}: found {to} for librdkafka and {request.strategy}, between which its members "
            f"cannot roll: stop all, wait until the group is empty, start all"
        )


def _field_of(change: StrategyChange | RollingUpdate) -> str:
    return "beside" if isinstance(change, RollingUpdate) and change.beside else "to"


def _check_conversion(request: ForecastRequest) -> None:
    """Refuse a roll to the consumer protocol that clients or broker do not know, or that nobody has watched."""
    to = request.assignor_after
    check_knows_consumer("change.to", to, request.client, request.broker, is_java=request.is_java)
    _check_policy(request)
    _refuse_mixture(request)


def _refuse_mixture(request: ForecastRequest) -> None:
    """Refuse pods of static and dynamic members that are replaced together."""
    if not isinstance(request.change, RollingUpdate):
        return
    everybody = (*request.members, *newcomers(request.change))
    dynamic = [member.id for member in everybody if member.instance_id is None]
    if 0 < len(dynamic) < len(everybody):
        raise BadInputError(
            f"members: found {fields.shown(dynamic[0])} without an instance_id among members that have one, whose pods "
            f"nobody has watched being replaced by ones of the other protocol: that has no forecast"
        )


def _refuse_subset(request: ForecastRequest) -> None:
    """Refuse a subset of a classic group that switches to another assignor: the coordinator lets no member in that
    lists that one alone."""
    change = request.change
    if not isinstance(change, StrategyChange) or request.protocol == CONSUMER or change.to == request.strategy:
        return
    if len(change.members) < len(request.members):
        raise BadInputError(
            f"change.clients: found {len(change.members)} of {len(request.members)} members, expected all of them: the "
            f"broker refuses who lists {change.to} alone while others do not list it (INCONSISTENT_GROUP_PROTOCOL), "
            f"who give up"
        )


def _check_subscription(request: ForecastRequest, change: SubscriptionChange) -> None:
    """Refuse topics that are none or that all subscribe to already, and static members, whose change nobody notices."""
    if not change.topics:
        raise BadInputError("change.to: found no topic, expected at least one that the members subscribe to")
    named = [member for member in request.members if member.id in change.members]
    if all(member.topics == change.topics for member in named):
        raise BadInputError(
            f"change.to: found {', '.join(sorted(change.topics))}, which all members of change.clients subscribe to "
            "already, expected other topics"
        )
    static = next((member for member in named if member.instance_id is not None), None)
    if static is not None:
        why = (
            "the group keeps the assignment of a static member that comes back, whatever it subscribes to then, until "
            "another rebalance, and how long that takes has no forecast"
            if request.protocol == CLASSIC
            else "nobody has watched static members of the consumer protocol come back with other topics"
        )
        raise BadInputError(
            f"change.clients: found {fields.shown(static.id)} with an instance_id, expected members without: {why}; "
            "stop all members until the group is empty, then start them with the new topics"
        )


def _check_created(request: ForecastRequest, change: TopicCreated) -> None:
    """Refuse a topic that is there for somebody already, and a pattern that the group's protocol does not know."""
    if any(change.topic in member.topics for member in request.members):
        raise BadInputError(
            f"change.matches: found {change.topic}, which a member subscribes to already, expected a topic that is new"
        )
    if change.by_broker and request.protocol != CONSUMER:
        raise BadInputError(
            f"change.evaluated_by: found broker with protocol {request.protocol}, expected protocol consumer: only its "
            "brokers evaluate patterns"
        )
    if not change.by_broker and request.protocol == CONSUMER:
        raise BadInputError(
            "change.evaluated_by: found client with protocol consumer, expected broker: each client finds the topic by "
            "a check of its own (metadata.max.age.ms), and the broker gives it to those alone that have, which has no "
            "forecast; nobody reads the topic until the first one has"
        )


def _check_reversion(request: ForecastRequest) -> None:
    """Refuse a roll to the classic protocol that the broker forbids, or that nobody has watched."""
    _check_policy(request)
    _refuse_mixture(request)


def _check_policy(request: ForecastRequest) -> None:
    """Refuse a roll between the protocols that ``group.consumer.migration.policy`` of the broker forbids."""
    policy = request.settings.text(MIGRATION_POLICY)
    allows = UPGRADE if request.converts else DOWNGRADE
    if policy not in (BIDIRECTIONAL, allows):
        raise BadInputError(
            f"settings.{MIGRATION_POLICY}: found {policy} with change.to {request.assignor_after}, expected "
            f"{BIDIRECTIONAL} or {allows}: {_NO_UPGRADE if request.converts else _NO_DOWNGRADE[policy]}"
        )


def known_assignor(name: str, field: str) -> str:
    """Return the name, checked to be an assignor's of one of the protocols, or a user's own."""
    own = None if name in ASSIGNORS else find_own(name, {})
    if own is not None and not own.is_cooperative:
        return name
    known = [assignor for of_protocol in OF_PROTOCOL.values() for assignor in of_protocol]
    if name not in known:
        raise fields.refusal(field, name, f"one of {', '.join(known)}")
    return name


def check_figures(request: ForecastRequest) -> None:
    """Refuse more partitions and members than one request may have, and figures out of their bounds."""
    count = sum(map(len, request.partitions.values()))
    if count > MOST_PARTITIONS:
        raise BadInputError(f"partitions: found more than {MOST_PARTITIONS}, the most in one request")
    if not count:
        raise BadInputError("partitions: found none, expected at least one partition of a topic")
    if len(request.members) > MOST_MEMBERS:
        raise BadInputError(f"members: found {len(request.members)}, expected at most {MOST_MEMBERS} in one request")
    for topic, partitions in request.partitions.items():
        for index, partition in enumerate(partitions):
            number(partition.rate, f"partitions[{topic!r}][{index}].rate", 0, MOST_RATE)
            number(partition.lag, f"partitions[{topic!r}][{index}].lag", 0, MOST_LAG)
    number(request.service_time_s, "service_time_s", 0, MOST_SECONDS)


def check_change(request: ForecastRequest) -> None:
    """Refuse a change of no member, of newcomers that are in the group, of unknown assignors and odd figures."""
    change = request.change
    if isinstance(change, OfMembers):
        refuse_none(change.members, "member", "changes")
    if isinstance(change, Join):
        refuse_none(change.members, "member", "joins")
    if isinstance(change, StrategyChange | RollingUpdate) and change.to is not None:
        known_assignor(change.to, "change.to")
    if isinstance(change, PartitionCount):
        fields.whole_number(change.partitions, "change.partitions", 0, MOST_RAISED)
        refuse_fewer(change.partitions, len(request.partitions[change.topic]), "change.partitions")
    refuse_present(newcomers(change), request.members, IDS[:1] if isinstance(change, BlueGreen) else IDS)
    check_seconds(change.rolling if isinstance(change, RollingUpdate) else change)


def refuse_fewer(count: int, present: int, field: str) -> None:
    """Refuse to take partitions of a topic away."""
    if count < present:
        raise BadInputError(f"{field}: found {count}, expected at least {present}: Kafka cannot take partitions away")


def check_size(request: ForecastRequest) -> None:
    """Refuse what would not fit into some gigabytes of memory: it takes far more than any group on record."""
    count = sum(len(partitions) for partitions in request.partitions.values())
    restarts = len(getattr(request.change, "members", ()))
    cells = request.trials * max(count, len(request.members) + restarts) * (1 + 2 * restarts)
    if cells > MOST_CELLS:
        fitting = MOST_CELLS // (cells // request.trials)
        raise BadInputError(
            f"trials: found {request.trials} for {count} partitions and {len(request.members)} members, of whom "
            f"{restarts} change, expected {fitting} trials at most for a group of that size"
        )
