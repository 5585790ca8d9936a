"""What a member of a group reports of itself that could also be said of a pod."""

from dataclasses import dataclass

from planner.model.membership import GroupMember


@dataclass(frozen=True, slots=True)
class MemberClues:
    """What identifies a member's pod: IP addresses without port, and names that the application may have taken from it.

    ``identity`` is the client id (RocketMQ) or member id (Kafka).
    """

    identity: str
    addresses: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def clues_of(member: GroupMember) -> MemberClues:
    """Return the clues of a member of either system."""
    return MemberClues(member.identity, member.ip_addresses, member.given_names)
