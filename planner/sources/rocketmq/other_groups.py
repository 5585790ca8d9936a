"""Which other groups the same clients serve: one ``MQClientInstance`` rebalances for all groups of its consumers.

A client id whose instance nobody named ends in the nanoseconds of its consumer's start since 4.9.0
(``ClientConfig#changeInstanceNameToPID``), so that it is a member of one group alone. Any other one may be of several.
No broker lists the groups of a client: each group is asked for its members, at most once a minute.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from planner.model.membership import OtherGroup
from planner.model.routes import BrokerAddress
from planner.sources.rocketmq.broker_reports import BrokerReport
from planner.sources.rocketmq.broker_states import settings_of
from planner.sources.rocketmq.groups import is_own
from planner.sources.rocketmq.query_session import QuerySession, failure_of

MOST_GROUPS: Final = 1_000
"""Groups of one broker that are asked for their members, some milliseconds each."""

_NANOSECONDS: Final = re.compile(r"#\d+(@|$)")

Connections = frozenset[tuple[str, str]]
"""Client ids with the addresses from which they are connected."""


def other_groups(
    session: QuerySession, reports: Sequence[BrokerReport], group: str, client_ids: Sequence[str]
) -> tuple[tuple[OtherGroup, ...], tuple[str, ...]]:
    """Return the other groups that some of these clients are members of, by name, and what could not be learned.

    A client's heartbeat names all its groups (``HeartbeatData``), so one broker that lists it knows them. It is the
    same client where it has the same connection: equal ids of two processes are two clients.
    """
    left = {client_id for client_id in client_ids if not _NANOSECONDS.search(client_id)}
    clients_of: dict[str, set[str]] = {}
    problems: list[str] = []
    for report in reports:
        mine = {(each.client_id, each.address) for each in report.connections or () if each.client_id in left}
        if not mine:
            continue
        left -= {client_id for client_id, _ in mine}
        ask = partial(_connected, session, report.broker)
        connected, unasked = session.admin.standing.get(("connected", report.broker.broker), ask)
        problems += unasked
        for other, theirs in connected.items():
            if other != group and (both := mine & theirs):
                clients_of.setdefault(other, set()).update(client_id for client_id, _ in both)
    return tuple(OtherGroup(other, tuple(sorted(ids))) for other, ids in sorted(clients_of.items())), tuple(problems)


def _connected(session: QuerySession, broker: BrokerAddress) -> tuple[Mapping[str, Connections], tuple[str, ...]]:
    """Return the connections of every group at a broker, and in a sentence which groups are not among them.

    None where the broker does not report its groups' settings, which ``broker_states`` names.
    """
    settings = settings_of(session, broker)
    names = [] if isinstance(settings, Exception) else sorted(name for name in settings if not is_own(name))
    if len(names) < 2:
        return {}, ()
    asked = {name: session.ask(broker, session.admin.connections, name) for name in names[:MOST_GROUPS]}
    silent = {name for name, future in asked.items() if failure_of(future) is not None}
    answers = {name: future.result() for name, future in asked.items() if name not in silent}
    connected = {
        name: frozenset((each.client_id, each.address) for each in answer.connections)
        for name, answer in answers.items()
        if answer is not None
    }
    return connected, tuple(_unasked(broker, len(names), len(silent)))


def _unasked(broker: BrokerAddress, groups: int, silent: int) -> Iterator[str]:
    missing = max(groups - MOST_GROUPS, 0) + silent
    if missing:
        yield (
            f"broker {broker.broker} does not show the members of {missing} of {groups} groups, which the same clients "
            "may serve: planner doctor --all reads all"
        )
