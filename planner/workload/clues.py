"""What a member of a group reports of itself that could also be said of a pod."""

from dataclasses import dataclass

from planner.model.membership import GroupMember, Member


@dataclass(frozen=True, slots=True)
class MemberClues:
    """What identifies a member's pod: IP addresses without port, and names that the application may have taken from it.

    ``identity`` is the client id (RocketMQ) or member id (Kafka).
    """

    identity: str
    addresses: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def clues_of(member: GroupMember) -> MemberClues:
    """Return the clues of a member of either system.

    RocketMQ: the client id is ``ip@instance[@unit][@STREAM]`` (``ClientConfig.buildMQClientId``, 4.9 to 5.5), the IP
    being what the client takes for its own; the connection's address is what the broker sees, another one behind
    address translation. Kafka: the address of the connection, the client id and the group instance id.
    """
    if isinstance(member, Member):
        announced, _, rest = member.client_id.partition("@")
        instance = rest.partition("@")[0]
        return MemberClues(member.identity, _distinct(announced, _host(member.address)), _distinct(instance))
    names = _distinct(member.client_id, member.instance_id or "")
    return MemberClues(member.identity, _distinct(member.host.removeprefix("/")), names)


def _host(address: str) -> str:
    return address.rpartition(":")[0].removeprefix("/").strip("[]")


def _distinct(*values: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))
