"""``CONFIG``: its lists say who owns what, so that another count of members needs other lists first.

A member that no list names owns nothing, and what a stopped member's list names is read by nobody. So a count is
simulated with the lists as they are only where these leave no queue of its members unread; else with lists that are
evened out, and then the answer is which lists to write, not a plan.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.allocation.ordering import java_sorted
from planner.allocation.registry import runnable_strategy
from planner.allocation.rocketmq import Config
from planner.model.queues import MessageQueue, message_queues
from planner.model.snapshot import GroupSnapshot
from planner.simulation.outcome import CandidateOutcome

NEW = "new consumer "


@dataclass(frozen=True, slots=True)
class ConfigLists:
    """The lists of one count: for each client its queues. ``are_present`` where they are those that run now."""

    by_client: Mapping[str, tuple[MessageQueue, ...]]
    are_present: bool

    @property
    def config(self) -> Config:
        """The strategy with these lists."""
        return Config(self.by_client)


def lists_for(snapshot: GroupSnapshot, config: Config, clients: Sequence[str]) -> ConfigLists:
    """Return the present lists where they give each of ``clients`` some queues and leave none out, else even ones.

    Even lists move as few queues as can be: nobody gives up more than what is above an even share.
    """
    data = message_queues(state.queue for state in snapshot.data_queues)
    listed = {queue for client in clients for queue in config.lists.get(client, ())}
    if listed.issuperset(data) and all(config.lists.get(client) for client in clients):
        return ConfigLists({client: tuple(config.lists[client]) for client in clients}, True)
    return ConfigLists(_evened(data, config, clients), False)


def _evened(
    data: Sequence[MessageQueue], config: Config, clients: Sequence[str]
) -> dict[str, tuple[MessageQueue, ...]]:
    share, more = divmod(len(data), len(clients))
    kept: dict[str, list[MessageQueue]] = {}
    is_free = set(data)
    largest_first = sorted(clients, key=lambda client: -len(config.lists.get(client, ())))
    room = {client: share + (number < more) for number, client in enumerate(largest_first)}
    for client in clients:
        own = [queue for queue in dict.fromkeys(config.lists.get(client, ())) if queue in is_free][: room[client]]
        kept[client] = own
        is_free -= set(own)
    free = [queue for queue in data if queue in is_free]
    return {client: (*kept[client], *_take(free, room[client] - len(kept[client]))) for client in clients}


def _take(free: list[MessageQueue], count: int) -> tuple[MessageQueue, ...]:
    taken = tuple(free[:count])
    del free[:count]
    return taken


def newcomers(snapshot: GroupSnapshot, config: Config, count: int) -> tuple[str, ...]:
    """Return so many new clients: those that the lists name already, then nameless ones."""
    named = [client for client in java_sorted(config.lists) if client not in snapshot.clients]
    return tuple([*named, *(f"{NEW}{number}" for number in range(1, count + 1))][:count])


def stayers(config: Config, present: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the ``count`` present clients with the longest lists, in the order of their ids."""
    longest = sorted(present, key=lambda client: -len(config.lists.get(client, ())))[:count]
    return tuple(client for client in present if client in longest)


def lists_to_write(snapshot: GroupSnapshot, count: int) -> Mapping[str, tuple[MessageQueue, ...]] | None:
    """Return the lists that must change before the group can have ``count`` members, ``None`` where none must.

    For fewer members those stay whose lists are longest: one that is to stop gives its list away before.
    """
    config = runnable_strategy(snapshot.strategy, snapshot.strategy_options)
    if not isinstance(config, Config) or count == len(snapshot.clients):
        return None
    present = snapshot.clients
    more = newcomers(snapshot, config, max(count - len(present), 0))
    lists = lists_for(snapshot, config, (*stayers(config, present, count), *more))
    if lists.are_present:
        return None
    return dict(_changed(lists.by_client, config, present))


def _changed(
    lists: Mapping[str, tuple[MessageQueue, ...]], config: Config, present: Sequence[str]
) -> Iterator[tuple[str, tuple[MessageQueue, ...]]]:
    for client, queues in lists.items():
        if set(queues) != set(config.lists.get(client, ())):
            yield client, queues
    for client in present:
        if client not in lists:
            yield client, ()


def listed_newcomers(snapshot: GroupSnapshot, outcome: CandidateOutcome) -> tuple[str, ...]:
    """Return the new clients of an outcome under ``CONFIG``: their ids are those of the lists. None elsewhere."""
    if snapshot.strategy != "CONFIG" or outcome.strategy != "CONFIG":
        return ()
    return tuple(load.client for load in outcome.loads if load.client not in snapshot.clients)
