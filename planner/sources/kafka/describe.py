"""Describing groups over our own connections, of both protocols."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from planner.errors import BadInputError, PlannerError, UnknownNameError
from planner.model.membership import KafkaMember
from planner.sources.kafka import requests
from planner.sources.kafka.answers import GroupDescription
from planner.sources.kafka.connection import Connection
from planner.sources.kafka.coordinators import ask_coordinators
from planner.sources.kafka.errors import ProtocolError, answer_error
from planner.sources.kafka.links import Links
from planner.sources.kafka.requests import WireGroup, WireMember
from planner.sources.kafka.subscription import read_assignment, read_subscription

_NO_SUCH_GROUP: Final = {69, 35}
"""GROUP_ID_NOT_FOUND, and the UNSUPPORTED_VERSION of brokers that offer the request but not KIP-848 (3.9)."""
_TOPIC_REFUSED: Final = 29

Described = dict[str, GroupDescription | PlannerError]


def describe_groups(links: Links, groups: Sequence[str]) -> Described:
    """Return each group's description, or the error that stands in its way."""
    return ask_coordinators(links, groups, _by_coordinator)


def _by_coordinator(link: Connection, node: int, groups: Sequence[str]) -> Described:
    """Ask for KIP-848 groups first: a classic request answers for them as if they did not exist."""
    modern: dict[str, WireGroup] = {}
    body = requests.groups_request(tuple(groups))
    if link.version(requests.CONSUMER_GROUP_DESCRIBE) is not None:
        modern = {one.group: one for one in link.ask(requests.CONSUMER_GROUP_DESCRIBE, body)}
    others = tuple(group for group in groups if group not in modern or modern[group].code in _NO_SUCH_GROUP)
    classic: dict[str, WireGroup] = {}
    if others:
        classic = {one.group: one for one in link.ask(requests.DESCRIBE_GROUPS, requests.groups_request(others))}
    kinds = _kinds(link, classic.values())
    return {group: _description(classic.get(group) or modern[group], node, kinds) for group in groups}


def _kinds(link: Connection, groups: Iterable[WireGroup]) -> Mapping[str, str]:
    """Return group -> kind for the groups of other kinds, where neither request knew one of ``groups``."""
    if not any(one.state == "Dead" for one in groups):
        return {}
    _, listings = link.ask(requests.LIST_GROUPS, requests.listing_request)
    # A consumer group among them began after it was asked for: it was not there, and the next look will see it.
    return {one.group: one.kind for one in listings if one.kind not in {"", "classic", "consumer"}}


def _description(said: WireGroup, node: int, kinds: Mapping[str, str]) -> GroupDescription | PlannerError:
    if said.code == _TOPIC_REFUSED:
        problem = f"group {said.group} does not show its members: {answer_error('its topics', said.code, said.remark)}"
        return GroupDescription(said.group, "consumer", "Unknown", None, node, (), problems=(problem,))
    if said.code:
        return answer_error(f"group {said.group}", said.code, said.remark)
    if said.state == "Dead":
        return unknown_group(said.group, kinds.get(said.group, ""))
    if said.protocol_type not in {"", "consumer"}:
        return unknown_group(said.group, said.protocol_type)
    members = [_classic_member(said, one) if said.epoch is None else _consumer_member(one) for one in said.members]
    return GroupDescription(
        group=said.group,
        protocol="classic" if said.epoch is None else "consumer",
        state=said.state,
        assignor=said.assignor or None,
        coordinator=node,
        members=tuple(sorted((member for member, _ in members), key=lambda member: member.member_id)),
        epoch=said.epoch,
        assignment_epoch=said.assignment_epoch,
        problems=(*_state_problems(said), *(problem for _, problem in members if problem)),
    )


def unknown_group(group: str, kind: str = "") -> PlannerError:
    """Return the error for a group that is not there, or is no consumer group but of another ``kind``."""
    if kind:
        return BadInputError(f"group {group} is a {kind} group: only consumer groups can be planned for, name another")
    return UnknownNameError(f"there is no consumer group {group}: check the spelling and the cluster")


def _state_problems(said: WireGroup) -> tuple[str, ...]:
    if said.state in {"Stable", "Empty"}:
        return ()
    if said.epoch is None:
        return (f"group {said.group} is {said.state}: until it is Stable it shows no subscriptions and no owners",)
    return (f"group {said.group} is {said.state}: partitions are still changing owners",)


def _classic_member(group: WireGroup, said: WireMember) -> tuple[KafkaMember, str]:
    """Read the member's own bytes, which the broker shows in a Stable group only."""
    plain = KafkaMember(said.member_id, said.client_id, host_of(said.host), said.instance_id, protocol="classic")
    if not said.metadata or group.state != "Stable":
        return plain, ""
    try:
        subscription, owned = read_subscription(said.metadata), read_assignment(said.assignment)
    except ProtocolError as error:
        return plain, f"member {said.member_id} has a subscription of its own making, which we cannot read: {error}"
    told = replace(
        plain, topics=subscription.topics, rack=subscription.rack, owned=owned, epoch=subscription.generation
    )
    return told, ""


def _consumer_member(said: WireMember) -> tuple[KafkaMember, str]:
    member = KafkaMember(
        member_id=said.member_id,
        client_id=said.client_id,
        host=host_of(said.host),
        instance_id=said.instance_id,
        rack=said.rack,
        topics=None if said.pattern else tuple(sorted(said.topics)),
        owned=said.owned,
        epoch=said.epoch,
        protocol=None if said.is_classic is None else ("classic" if said.is_classic else "consumer"),
    )
    if not said.pattern:
        return member, ""
    return (
        member,
        f"member {said.member_id} subscribes to the pattern {said.pattern}: which topics that are is not told",
    )


def host_of(address: str) -> str:
    """Return a member's address without the slash that Java puts before it."""
    return address.removeprefix("/")
