"""Which consumer groups there are, online or not.

Brokers of all versions list the groups that they have settings for (request 201); a group gets them with its first
member, or from an operator. One whose settings were deleted still has its commits (request 43), so both are asked for.
"""

from typing import Final

from planner.errors import OutOfReachError
from planner.sources.rocketmq.broker_states import settings_of
from planner.sources.rocketmq.client import RocketMQAdmin
from planner.sources.rocketmq.look import Look, failure_of

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


def group_names(admin: RocketMQAdmin, cluster: str | None = None) -> tuple[str, ...]:
    """Return all consumer groups of one cluster or of all, sorted, RocketMQ's own left out.

    Asks every broker and takes what is told. Raises ``OutOfReachError`` when none tells anything, ``UnknownNameError``
    for a cluster that is not there.
    """
    with Look.at(admin, cluster, is_wide=True) as look:
        return names_in(look)


def names_in(look: Look) -> tuple[str, ...]:
    """Return the groups of a look as ``group_names`` does."""
    commits = [look.ask(broker, lambda _, broker=broker: look.commits(broker)) for broker in look.brokers]
    settings = [settings_of(look, broker) for broker in look.brokers]
    names: set[str] = set()
    failures: list[Exception] = []
    for told in (*settings, *(failure_of(one) or one.result() for one in commits)):
        if isinstance(told, Exception):
            failures.append(told)
        else:
            names |= set(told)
    if len(failures) == 2 * len(look.brokers):
        raise OutOfReachError(f"no broker tells which groups there are: {failures[0]}")
    return tuple(name for name in sorted(names) if not is_own(name))
