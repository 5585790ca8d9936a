"""Who owns which queue in a simulated group, by the group's own strategy."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from planner.allocation.kafka import ASSIGNORS, Topics, equal_group
from planner.allocation.ordering import topic_slices
from planner.allocation.registry import STRATEGIES
from planner.allocation.strategy import NOBODY
from planner.backtest.scenario import Floats, Ints, Scenario
from planner.errors import UnknownNameError
from planner.model.queues import MessageQueue

RANDOM = "random"
POSITIONAL_ASSIGNORS = frozenset({"range", "range-server", "roundrobin"})
EAGER_ASSIGNORS = frozenset({"range", "roundrobin", "sticky"})
"""Assignors of the classic protocol under which every member gives up everything before each rebalance (KIP-429)."""


def strategy_names(system: str) -> tuple[str, ...]:
    """Return the strategies that a backtest can play: those that need no options and do not draw lots."""
    if system == "kafka":
        return tuple(name for name in ASSIGNORS if name != RANDOM)
    return tuple(STRATEGIES)


class GroupOwners:
    """Owners of all queues of one group for any members, by the strategy of its clients."""

    def __init__(self, scenario: Scenario) -> None:
        """Raise ``UnknownNameError`` for a strategy that a backtest cannot play."""
        if scenario.strategy not in strategy_names(scenario.system):
            names = ", ".join(strategy_names(scenario.system))
            raise UnknownNameError(f"strategy: found {scenario.strategy!r}, expected one of {names}")
        self._is_kafka = scenario.system == "kafka"
        self._strategy = scenario.strategy
        self._queues = [queue for queue in scenario.queues if isinstance(queue, MessageQueue)]
        self._topics = Topics(scenario.topic_sizes)
        self._by_count = cache(self._fresh)

    @property
    def is_positional(self) -> bool:
        """Whether owners follow from the number of members alone."""
        if self._is_kafka:
            return self._strategy in POSITIONAL_ASSIGNORS
        return STRATEGIES[self._strategy].is_positional

    @property
    def stops_all(self) -> bool:
        """Whether every member stops all its queues at each rebalance."""
        return self._is_kafka and self._strategy in EAGER_ASSIGNORS

    def of_count(self, count: int) -> Ints:
        """Return each queue's owner as a rank among ``count`` members of a group that starts afresh.

        Where the strategy goes by names or by what was owned before, this is one of several possible answers.
        """
        return self._by_count(count)

    def of_members(self, names: Sequence[str], owned_before: Ints | None) -> Ints:
        """Return each queue's owner as a rank in ``names``, which are sorted.

        ``owned_before`` has the owners before the change in the same ranks, ``NOBODY`` where the owner has left.
        """
        if self.is_positional:
            return self.of_count(len(names))
        if self._is_kafka:
            return ASSIGNORS[self._strategy](equal_group(self._topics, len(names), owned_before)).owners
        return self._by_name(names)

    def _fresh(self, count: int) -> Ints:
        if self._is_kafka:
            return ASSIGNORS[self._strategy](equal_group(self._topics, count)).owners
        return self._by_name([f"member-{rank:06d}" for rank in range(count)])

    def _by_name(self, names: Sequence[str]) -> Ints:
        strategy = STRATEGIES[self._strategy]
        owners = [strategy.owners(self._queues[topic], names) for _, topic in topic_slices(self._queues)]
        return np.concatenate(owners)


def busiest_share(owners: Ints, shares: Floats, count: int) -> float:
    """Return the largest part of the group's load on one of ``count`` consumers; ``shares`` adds up to 1.

    Queues that nobody owns count as a consumer of their own: their messages wait whatever the others do.
    """
    return float(np.bincount(np.where(owners == NOBODY, count, owners), weights=shares, minlength=count).max())
