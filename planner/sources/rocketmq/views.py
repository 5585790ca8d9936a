"""What each broker says of a group: who is connected, what was committed; and where brokers disagree."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from planner.errors import OutOfReachError, PlannerError, UnknownNameError
from planner.model.membership import BrokerMembers
from planner.model.queues import RETRY_PREFIX
from planner.model.routes import BrokerAddress, TopicRoute
from planner.model.samples import QueueOffsets
from planner.sources.rocketmq.answers import ClientConnection, ConsumeStats, GroupConnections
from planner.sources.rocketmq.look import Look, failure_of
from planner.sources.rocketmq.wording import some

BROADCASTING = "BROADCASTING"


@dataclass(frozen=True)
class BrokerView:
    """What one broker said of the group; ``None`` for what it did not answer.

    ``connections`` are known from request 203. Where only that one is refused, ``member_ids`` come from 38.
    """

    broker: BrokerAddress
    connections: tuple[ClientConnection, ...] | None
    member_ids: tuple[str, ...] | None
    topics: tuple[str, ...]
    consume_type: str
    message_model: str
    offsets: tuple[QueueOffsets, ...] | None
    problems: tuple[str, ...]

    @cached_property
    def present_ids(self) -> Counter[str]:
        """How often each client id is connected here."""
        return Counter(self.member_ids or ()) | Counter(one.client_id for one in self.connections or ())

    @property
    def tells_members(self) -> bool:
        """True when it said who is connected, be it nobody."""
        return self.member_ids is not None or self.connections is not None

    @property
    def has_group(self) -> bool:
        """True when the group has members or commits here."""
        return bool(self.present_ids or self.offsets)

    @property
    def listed(self) -> BrokerMembers:
        """The broker's own list of members."""
        clients = tuple(sorted(self.present_ids.elements())) if self.tells_members else None
        return BrokerMembers(self.broker.broker, clients, tuple(one.address for one in self.connections or ()))


def broker_views(look: Look, group: str) -> tuple[BrokerView, ...]:
    """Return what each broker of the look says of ``group``, in broker order."""
    asked = [
        (broker, look.ask(broker, look.admin.connections, group), _stats(look, broker, group))
        for broker in look.brokers
    ]
    refused = {
        broker.broker: look.ask(broker, look.admin.member_ids, group)
        for broker, connections, _ in asked
        if failure_of(connections)
    }
    return tuple(_view(broker, connections, refused.get(broker.broker), stats) for broker, connections, stats in asked)


def _stats(look: Look, broker: BrokerAddress, group: str) -> "Future[ConsumeStats]":
    """Ask for offsets, unless all commits are known and the group has none: then the answer is known, too."""
    return look.ask(broker, lambda address: _stats_or_none(look, broker, address, group))


def _stats_or_none(look: Look, broker: BrokerAddress, address: str, group: str) -> ConsumeStats:
    if look.is_wide and not _may_have_commits(look, broker, group):
        return ConsumeStats(0.0, ())
    return look.admin.consume_stats(address, group)


def _may_have_commits(look: Look, broker: BrokerAddress, group: str) -> bool:
    try:
        return group in look.commits(broker)
    except OutOfReachError:
        return True


def _view(
    broker: BrokerAddress,
    connections: "Future[GroupConnections | None]",
    ids: "Future[tuple[str, ...]] | None",
    stats: "Future[ConsumeStats]",
) -> BrokerView:
    said = None if failure_of(connections) else connections.result()
    # "Offline" is an answer, too: it says that there are no connections.
    no_connections = None if failure_of(connections) else ()
    asked: list[Future[Any]] = [connections, *([ids] if ids else []), stats]
    failures = [error for error in map(failure_of, asked) if error is not None]
    return BrokerView(
        broker=broker,
        connections=said.connections if said else no_connections,
        member_ids=None if ids is None or failure_of(ids) else ids.result(),
        topics=said.topics if said else (),
        consume_type=said.consume_type if said else "",
        message_model=said.message_model if said else "",
        offsets=None if failure_of(stats) else stats.result().offsets,
        problems=_request_problems(broker, failures),
    )


def _request_problems(broker: BrokerAddress, failures: Sequence[PlannerError]) -> tuple[str, ...]:
    requests = 3  # connections, member ids in their stead, offsets
    if len(failures) < requests:
        return tuple(f"broker {broker.broker}: {error}" for error in failures)
    return (f"broker {broker.broker} answered none of {requests} requests: {failures[0]}",)


def check_group(views: Sequence[BrokerView], group: str) -> None:
    """Raise ``UnknownNameError`` when no broker knows the group, ``OutOfReachError`` when that cannot be told."""
    if any(view.has_group for view in views):
        return
    problems = [problem for view in views for problem in view.problems]
    asked = ", ".join(f"{view.broker.broker} ({view.broker.address})" for view in views)
    if problems:
        raise OutOfReachError(
            f"cannot tell whether group {group} exists, since of the brokers {asked} not all answered: "
            f"see whether they are up, then try again; {'; '.join(problems)}"
        )
    raise UnknownNameError(
        f"no broker knows group {group}: {asked} have neither members nor offsets of it; check the spelling and cluster"
    )


def cluster_name(views: Sequence[BrokerView], cluster: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the cluster where the group lives, and a problem when there are several."""
    if cluster is not None:
        return cluster, ()
    names = sorted({view.broker.cluster for view in views if view.has_group})
    if len(names) > 1:
        return ",".join(names), (f"the group lives in {len(names)} clusters ({', '.join(names)}): name one of them",)
    return names[0], ()


def model_problems(views: Sequence[BrokerView], group: str) -> tuple[str, ...]:
    """Say when the group is broadcasting."""
    if all(view.message_model != BROADCASTING for view in views):
        return ()
    return (f"group {group} is broadcasting: each member reads every queue and keeps its offsets to itself",)


def membership_problems(views: Sequence[BrokerView], routes: Sequence[TopicRoute], group: str) -> tuple[str, ...]:
    """Say which ids miss on a broker and which are connected twice.

    Clients keep a connection to the brokers of their topics only, so a broker without any of these misses nobody.
    """
    everyone = sorted({client_id for view in views for client_id in view.present_ids})
    if not everyone:
        return (f"group {group} is offline: it has offsets, but no broker that answered lists a member",)
    at_work = {part.broker for route in routes if not route.topic.startswith(RETRY_PREFIX) for part in route.brokers}
    problems = []
    for view in views:
        name, present = view.broker.broker, view.present_ids
        missing = [client_id for client_id in everyone if client_id not in present]
        if missing and view.tells_members and name in at_work:
            problems.append(f"broker {name} does not list {some(missing)}, which other brokers do")
        for client_id in sorted(client_id for client_id, count in present.items() if count > 1):
            where = [one.address for one in view.connections or () if one.client_id == client_id]
            problems.append(
                f"client id {client_id} is connected to broker {name} {present[client_id]} times ({some(where)})"
            )
    return tuple(problems)
