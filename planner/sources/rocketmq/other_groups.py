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

_OF_ONE_CONSUMER: Final = re.compile(r"#\d+(@|$)")

MembersByGroup = Mapping[str, frozenset[str]]


def other_groups(
    session: QuerySession, reports: Sequence[BrokerReport], group: str, client_ids: Sequence[str]
) -> tuple[tuple[OtherGroup, ...], tuple[str, ...]]:
    """Return the other groups that some of these clients are members of, by name, and what could not be learned.

    A client's heartbeat names all its groups (``HeartbeatData``), so one broker that lists it knows them.
    """
    left = {client_id for client_id in client_ids if not _OF_ONE_CONSUMER.search(client_id)}
    found: dict[str, set[str]] = {}
    problems: list[str] = []
    for report in reports:
        listed = left & set(report.present_ids)
        if not listed:
            continue
        left -= listed
        ask = partial(_members, session, report.broker)
        members, unasked = session.admin.standing.get(("members", report.broker.broker), ask)
        problems += unasked
        for other, ids in members.items():
            if other != group and (both := _with_one_connection(session, report, other, listed & ids)):
                found.setdefault(other, set()).update(both)
    return tuple(OtherGroup(other, tuple(sorted(ids))) for other, ids in sorted(found.items())), tuple(problems)


def _with_one_connection(session: QuerySession, report: BrokerReport, other: str, ids: set[str]) -> set[str]:
    """Return the ids that have the same connection in both groups: equal ids of two processes are two clients."""
    if not ids or report.connections is None:
        return ids
    asked = session.ask(report.broker, session.admin.connections, other)
    told = None if failure_of(asked) else asked.result()
    if told is None:
        return set()
    mine = {(each.client_id, each.address) for each in report.connections}
    return {each.client_id for each in told.connections if (each.client_id, each.address) in mine} & ids


def _members(session: QuerySession, broker: BrokerAddress) -> tuple[MembersByGroup, tuple[str, ...]]:
    """Return the members of every group at a broker, and in a sentence which groups are not among them.

    None where the broker does not report its groups' settings, which ``broker_states`` names.
    """
    settings = settings_of(session, broker)
    names = [] if isinstance(settings, Exception) else sorted(name for name in settings if not is_own(name))
    if len(names) < 2:
        return {}, ()
    asked = {name: session.ask(broker, session.admin.member_ids, name) for name in names[:MOST_GROUPS]}
    silent = {name for name, future in asked.items() if failure_of(future) is not None}
    members = {name: frozenset(future.result()) for name, future in asked.items() if name not in silent}
    return members, tuple(_unasked(broker, len(names), len(silent)))


def _unasked(broker: BrokerAddress, groups: int, silent: int) -> Iterator[str]:
    missing = max(groups - MOST_GROUPS, 0) + silent
    if missing:
        yield (
            f"broker {broker.broker} does not show the members of {missing} of {groups} groups, which the same clients "
            "may serve: planner doctor --all reads all"
        )
