"""Describing groups over our own connections, of every protocol."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from planner.errors import BadInputError, PlannerError, UnknownNameError
from planner.model.membership import KafkaMember
from planner.sources.kafka import requests
from planner.sources.kafka.answers import GroupDescription
from planner.sources.kafka.broker_connections import BrokerConnections
from planner.sources.kafka.connection import Connection
from planner.sources.kafka.coordinators import ask_coordinators
from planner.sources.kafka.errors import ProtocolError, answer_error
from planner.sources.kafka.requests import WireGroup, WireMember
from planner.sources.kafka.subscription import read_assignment, read_subscription

_NO_SUCH_GROUP: Final = {69, 35}
"""GROUP_ID_NOT_FOUND, and the UNSUPPORTED_VERSION of brokers that offer the request but not KIP-848 (3.9)."""
_TOPIC_REFUSED: Final = 29

LEVERS: Final[Mapping[str, str]] = {
    "connect": "workers of Connect share connectors and tasks, no partitions: the lever is a connector's tasks.max",
    "share": "its members share records (KIP-932), and these brokers do not show its lag, as those of 4.2 and later do "
    "(KIP-1226): the lever is the number of members, or what one of them does",
    "sr": "members of a Schema Registry elect a leader and share no load",
    "streams": "a Streams application (KIP-1071) shares tasks, those with state after a restore: the lever is "
    "num.stream.threads, and instances up to the number of tasks",
}
"""Kind of group -> what decides how much it can do."""

Described = dict[str, GroupDescription | PlannerError]


def describe_groups(connections: BrokerConnections, groups: Sequence[str]) -> Described:
    """Return each group's description, or the error that stands in its way."""
    return ask_coordinators(connections, groups, _by_coordinator)


def _by_coordinator(link: Connection, node: int, groups: Sequence[str]) -> Described:
    """Ask for KIP-848 groups first: a classic request answers for them, and for share groups, as if they were not."""
    modern: dict[str, WireGroup] = {}
    body = requests.groups_request(tuple(groups))
    if link.version(requests.CONSUMER_GROUP_DESCRIBE) is not None:
        modern = {answer.group: answer for answer in link.ask(requests.CONSUMER_GROUP_DESCRIBE, body)}
    others = tuple(group for group in groups if group not in modern or modern[group].code in _NO_SUCH_GROUP)
    classic: dict[str, WireGroup] = {}
    if others:
        classic = {
            answer.group: answer for answer in link.ask(requests.DESCRIBE_GROUPS, requests.groups_request(others))
        }
    kinds = _kinds(link, classic.values())
    shares = _share_groups(link, tuple(group for group in classic if kinds.get(group) == "share"))
    known = {**modern, **classic, **shares}
    return {group: _description(known[group], node, kinds) for group in groups}


def _share_groups(link: Connection, groups: tuple[str, ...]) -> Mapping[str, WireGroup]:
    """Return the share groups as brokers describe them that show their lag, too; none of others."""
    shows_lags = link.version(requests.DESCRIBE_SHARE_GROUP_OFFSETS) is not None
    if not groups or not shows_lags or link.version(requests.SHARE_GROUP_DESCRIBE) is None:
        return {}
    answers = link.ask(requests.SHARE_GROUP_DESCRIBE, requests.groups_request(groups))
    return {answer.group: answer for answer in answers}


def _kinds(link: Connection, groups: Iterable[WireGroup]) -> Mapping[str, str]:
    """Return group -> kind for the groups of other kinds, where neither request knew one of ``groups``."""
    if not any(group.state == "Dead" for group in groups):
        return {}
    _, listings = link.ask(requests.LIST_GROUPS, requests.listing_request)
    # A consumer group among them began after it was asked for: it did not exist, and the next sample will show it.
    return {group.group: group.kind for group in listings if group.kind not in {"", "classic", "consumer"}}


def _description(group: WireGroup, node: int, kinds: Mapping[str, str]) -> GroupDescription | PlannerError:
    if group.code == _TOPIC_REFUSED:
        problem = (
            f"group {group.group} does not show its members: {answer_error('its topics', group.code, group.remark)}"
        )
        return GroupDescription(group.group, _protocol(group), "Unknown", None, node, (), problems=(problem,))
    if group.code in _NO_SUCH_GROUP and group.protocol_type == "share":
        return unknown_group(group.group)  # it ended between two requests
    if group.code:
        return answer_error(f"group {group.group}", group.code, group.remark)
    if group.state == "Dead":
        return unknown_group(group.group, kinds.get(group.group, ""))
    if group.protocol_type not in {"", "consumer", "share"}:
        return unknown_group(group.group, group.protocol_type)
    members = [
        _classic_member(group, wire_member) if group.epoch is None else _described_member(group, wire_member)
        for wire_member in group.members
    ]
    return GroupDescription(
        group=group.group,
        protocol=_protocol(group),
        state=group.state,
        assignor=group.assignor or None,
        coordinator=node,
        members=tuple(sorted((member for member, _ in members), key=lambda member: member.member_id)),
        epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        problems=(*_state_problems(group), *(problem for _, problem in members if problem)),
    )


def _protocol(group: WireGroup) -> str:
    return "classic" if group.epoch is None else group.protocol_type


def unknown_group(group: str, kind: str = "") -> PlannerError:
    """Return the error for a group that is not there, or is no consumer group but of another ``kind``."""
    if kind:
        lever = f"; {LEVERS[kind]}" if kind in LEVERS else ""
        return BadInputError(
            f"group {group} is a {kind} group: only consumer groups can be planned for, name another{lever}"
        )
    return UnknownNameError(f"there is no consumer group {group}: check the spelling and the cluster")


def _state_problems(group: WireGroup) -> tuple[str, ...]:
    if group.state in {"Stable", "Empty"}:
        return ()
    if group.epoch is None:
        return (f"group {group.group} is {group.state}: until it is Stable it shows no subscriptions and no owners",)
    return (f"group {group.group} is {group.state}: partitions are still changing owners",)


def _classic_member(group: WireGroup, member: WireMember) -> tuple[KafkaMember, str]:
    """Read the member's own bytes, which the broker shows in a Stable group only."""
    plain = KafkaMember(
        member.member_id, member.client_id, host_of(member.host), member.instance_id, protocol="classic"
    )
    if not member.metadata or group.state != "Stable":
        return plain, ""
    try:
        subscription, owned = read_subscription(member.metadata), read_assignment(member.assignment)
    except ProtocolError as error:
        return plain, f"member {member.member_id} has a subscription of its own making, which we cannot read: {error}"
    known = replace(
        plain, topics=subscription.topics, rack=subscription.rack, owned=owned, epoch=subscription.generation
    )
    return known, ""


def _described_member(group: WireGroup, wire: WireMember) -> tuple[KafkaMember, str]:
    member, problem = _consumer_member(wire)
    return (replace(member, protocol="share") if group.protocol_type == "share" else member), problem


def _consumer_member(wire: WireMember) -> tuple[KafkaMember, str]:
    member = KafkaMember(
        member_id=wire.member_id,
        client_id=wire.client_id,
        host=host_of(wire.host),
        instance_id=wire.instance_id,
        rack=wire.rack,
        topics=None if wire.pattern else tuple(sorted(wire.topics)),
        owned=wire.owned,
        epoch=wire.epoch,
        protocol=None if wire.is_classic is None else ("classic" if wire.is_classic else "consumer"),
    )
    if not wire.pattern:
        return member, ""
    return (
        member,
        f"member {wire.member_id} subscribes to the pattern {wire.pattern}: which topics match is not reported",
    )


def host_of(address: str) -> str:
    """Return a member's address without the slash that Java puts before it."""
    return address.removeprefix("/")
