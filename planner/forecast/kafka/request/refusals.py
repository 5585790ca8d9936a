"""Kafka requests that are refused by name: better no forecast than a wrong one."""

from planner.allocation import fields
from planner.errors import BadInputError
from planner.forecast.common.request_fields import Version
from planner.forecast.kafka.request.changes import Join, RollingUpdate, StrategyChange, newcomers
from planner.forecast.kafka.request.request import COOPERATIVE, OF_PROTOCOL, ForecastRequest
from planner.forecast.kafka.request.settings import (
    BIDIRECTIONAL,
    CLASSIC,
    CONSUMER,
    DISABLED,
    DOWNGRADE,
    MIGRATION_POLICY,
    UPGRADE,
)

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
    change, to = request.change, request.assignor_after
    if request.converts:
        _check_conversion(request)
        return
    if request.reverts:
        _check_reversion(request)
        return
    _refuse_subset(request)
    if isinstance(change, RollingUpdate) and change.beside is not None:
        to = change.beside
        if request.protocol == CONSUMER or to not in OF_PROTOCOL[CLASSIC] or to == request.strategy:
            raise BadInputError(
                f"change.beside: found {to} for protocol {request.protocol} and {request.strategy}, expected another "
                f"assignor of clients in a classic group"
            )
    if not isinstance(change, StrategyChange | RollingUpdate) or request.is_java or to == request.strategy:
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
