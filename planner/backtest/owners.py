"""Who owns which queue in a simulated group, by the group's own strategy."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

import numpy as np

from planner.allocation.kafka import ASSIGNORS, Topics, equal_group
from planner.allocation.ordering import topic_slices
from planner.allocation.registry import STRATEGIES
from planner.allocation.strategy import NOBODY
from planner.backtest.scenario import Floats, Ints, Scenario
from planner.errors import UnknownNameError
from planner.model.queues import message_queues

RANDOM = "random"
POSITIONAL_ASSIGNORS = frozenset({"range", "range-server", "roundrobin"})
EAGER_ASSIGNORS = frozenset({"range", "roundrobin", "sticky"})
"""Assignors of the classic protocol under which every member gives up everything before each rebalance (KIP-429)."""


class Allocator(ABC):
    """One system's way of giving the queues of a scenario to members."""

    is_positional: bool
    """Whether owners follow from the number of members alone."""

    stops_all: bool
    """Whether every member stops all its queues at each rebalance."""

    @abstractmethod
    def fresh(self, count: int) -> Ints:
        """Return each queue's owner as a rank among ``count`` members of a group that starts afresh."""

    @abstractmethod
    def after(self, names: Sequence[str], owned_before: Ints | None) -> Ints:
        """Return each queue's owner as a rank in ``names``, after a change."""


class _ByStrategy(Allocator):
    """RocketMQ: each topic is allocated by itself, by the sorted names."""

    stops_all = False

    def __init__(self, scenario: Scenario) -> None:
        self._strategy = STRATEGIES[scenario.strategy]
        self._queues = message_queues(scenario.queues)
        self.is_positional = self._strategy.is_positional

    def fresh(self, count: int) -> Ints:
        return self.after([f"member-{rank:06d}" for rank in range(count)], None)

    def after(self, names: Sequence[str], owned_before: Ints | None) -> Ints:  # noqa: ARG002 - strategies have no memory
        owners = [self._strategy.owners(self._queues[topic], names) for _, topic in topic_slices(self._queues)]
        return np.concatenate(owners)


class _ByAssignor(Allocator):
    """Kafka: one party assigns all topics, by what members own already where the assignor is sticky."""

    def __init__(self, scenario: Scenario) -> None:
        self._assignor, self._topics = ASSIGNORS[scenario.strategy], Topics(scenario.topic_sizes)
        self.is_positional = scenario.strategy in POSITIONAL_ASSIGNORS
        self.stops_all = scenario.strategy in EAGER_ASSIGNORS

    def fresh(self, count: int) -> Ints:
        return self._assignor(equal_group(self._topics, count)).owners

    def after(self, names: Sequence[str], owned_before: Ints | None) -> Ints:
        return self._assignor(equal_group(self._topics, len(names), owned_before)).owners


_ALLOCATORS: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Scenario], Allocator]]]] = {
    "rocketmq": (tuple(STRATEGIES), _ByStrategy),
    "kafka": (tuple(name for name in ASSIGNORS if name != RANDOM), _ByAssignor),
}
"""By system: the strategies that a backtest can play, and what allocates by them."""


def strategy_names(system: str) -> tuple[str, ...]:
    """Return the strategies that a backtest can play: those that need no options and do not draw lots."""
    return _ALLOCATORS[system][0]


class GroupOwners:
    """Owners of all queues of one group for any members, by the strategy of its clients."""

    def __init__(self, scenario: Scenario) -> None:
        """Raise ``UnknownNameError`` for a strategy that a backtest cannot play."""
        if scenario.strategy not in strategy_names(scenario.system):
            names = ", ".join(strategy_names(scenario.system))
            raise UnknownNameError(f"strategy: found {scenario.strategy!r}, expected one of {names}")
        self._allocator = _ALLOCATORS[scenario.system][1](scenario)
        self._by_count = cache(self._allocator.fresh)

    @property
    def is_positional(self) -> bool:
        """Whether owners follow from the number of members alone."""
        return self._allocator.is_positional

    @property
    def stops_all(self) -> bool:
        """Whether every member stops all its queues at each rebalance."""
        return self._allocator.stops_all

    def of_count(self, count: int) -> Ints:
        """Return each queue's owner as a rank among ``count`` members of a group that starts afresh.

        Where the strategy goes by names or by what was owned before, this is one of several possible answers.
        """
        return self._by_count(count)

    def of_members(self, names: Sequence[str], owned_before: Ints | None) -> Ints:
        """Return each queue's owner as a rank in ``names``, which are sorted.

        ``owned_before`` has the owners before the change in the same ranks, ``NOBODY`` where the owner has left.
        """
        return self.of_count(len(names)) if self.is_positional else self._allocator.after(names, owned_before)


def busiest_share(owners: Ints, shares: Floats, count: int) -> float:
    """Return the largest part of the group's load on one of ``count`` consumers; ``shares`` adds up to 1.

    Queues that nobody owns count as a consumer of their own: their messages wait whatever the others do.
    """
    return float(np.bincount(np.where(owners == NOBODY, count, owners), weights=shares, minlength=count).max())
