"""Which consumer groups there are, online or not.

Brokers of all versions list the groups that they have settings for (request 201); a group gets them with its first
member, or from an operator. One whose settings were deleted still has its commits (request 43), so both are asked for.
"""

from dataclasses import dataclass
from typing import Final

from planner.errors import OutOfReachError
from planner.model.routes import BrokerAddress
from planner.sources.rocketmq.broker_states import settings_of
from planner.sources.rocketmq.client import RocketMQAdmin
from planner.sources.rocketmq.query_session import QuerySession, failure_of

OWN_GROUPS: Final = frozenset(
    {
        "CID_DefaultHeartBeatSyncerTopic",
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_OWNER",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_PULL",
        "CID_SYS_RMQ_TRANS",
        "CLIENT_INNER_PRODUCER",
        "DEFAULT_CONSUMER",
        "DEFAULT_PRODUCER",
        "FILTERSRV_CONSUMER",
        "SCHEDULE_CONSUMER",
        "SELF_TEST_C_GROUP",
        "SELF_TEST_P_GROUP",
        "TOOLS_CONSUMER",
        "__MONITOR_CONSUMER",
    }
)
OWN_PREFIX: Final = "CID_RMQ_SYS_"
"""Groups of RocketMQ itself (``MixAll``: names and ``isSysConsumerGroup``)."""


def is_own(group: str) -> bool:
    """Return whether RocketMQ itself uses the group."""
    return group in OWN_GROUPS or group.startswith(OWN_PREFIX)


@dataclass(frozen=True, slots=True)
class GroupList:
    """The names of consumer groups, sorted, and what of the list could not be read, in sentences."""

    names: tuple[str, ...]
    problems: tuple[str, ...]


def group_names(admin: RocketMQAdmin, cluster: str | None = None) -> tuple[str, ...]:
    """Return all consumer groups of one cluster or of all, sorted, RocketMQ's own left out.

    Asks every broker and takes what comes. Raises ``OutOfReachError`` when none lists anything, ``UnknownNameError``
    for a cluster that is not there.
    """
    return list_groups(admin, cluster).names


def list_groups(admin: RocketMQAdmin, cluster: str | None = None) -> GroupList:
    """Return the groups as ``group_names`` does, and which brokers did not list theirs. Raises the same."""
    with QuerySession.at(admin, cluster, is_wide=True) as session:
        return groups_in(session)


def groups_in(session: QuerySession) -> GroupList:
    """Return the groups of a session as ``list_groups`` does."""
    commits = [session.ask(broker, lambda _, broker=broker: session.commits(broker)) for broker in session.brokers]
    settings = [settings_of(session, broker) for broker in session.brokers]
    names: set[str] = set()
    failures: dict[tuple[BrokerAddress, str], Exception] = {}
    for what, answers in (
        ("have settings", settings),
        ("committed", [failure_of(future) or future.result() for future in commits]),
    ):
        for broker, answer in zip(session.brokers, answers, strict=True):
            if isinstance(answer, Exception):
                failures[broker, what] = answer
            else:
                names |= set(answer)
    if len(failures) == 2 * len(session.brokers):
        raise OutOfReachError(f"no broker reports which groups there are: {next(iter(failures.values()))}")
    problems = (
        f"broker {broker.broker} does not report which groups {what}, so some may be missing: {error}"
        for (broker, what), error in failures.items()
    )
    return GroupList(tuple(name for name in sorted(names) if not is_own(name)), tuple(problems))
