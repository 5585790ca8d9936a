"""What a request means: which processes live when, which brokers and routes there are, before and after the change."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.allocation.ordering import sorted_queues, topic_slices
from planner.allocation.rocketmq import PopSharing
from planner.allocation.strategy import Holdings, Strategy
from planner.forecast.rocketmq.membership.client_behaviour import ClientBehaviour, find_behaviour
from planner.forecast.rocketmq.membership.processes import AFTER, BEFORE, Process, find_processes
from planner.forecast.rocketmq.request.changes import (
    BrokerDown,
    BrokerUp,
    Change,
    Client,
    Partition,
    QueueCount,
    StrategyChange,
    SubscriptionChange,
    newcomers,
)
from planner.forecast.rocketmq.request.request import ForecastRequest
from planner.model.queues import MessageQueue

Floats = NDArray[np.float64]
Indexes = NDArray[np.intp]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic with its queues and brokers in either route, as indexes into the scenario's lists."""

    name: str
    queues: tuple[Indexes, Indexes]
    brokers: tuple[Indexes, Indexes]


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """All that the simulation needs to know of a request, by index.

    ``queues`` are those of both routes, sorted; ``rates`` and ``lags`` belong to them. ``route_changes`` says whether
    the two routes differ; ``down`` and ``up`` are the broker that dies or starts. ``known`` keeps allocations that were
    computed before, by strategy, topic, route and number of members.
    """

    request: ForecastRequest
    clients: tuple[Client, ...]
    processes: tuple[Process, ...]
    behaviour: ClientBehaviour
    queues: tuple[MessageQueue, ...]
    rates: Floats
    lags: Floats
    topics: tuple[Topic, ...]
    brokers: tuple[str, ...]
    strategies: tuple[Strategy, Strategy]
    route_changes: bool = False
    down: int | None = None
    up: int | None = None
    known: dict[tuple[int, str, int, int], Holdings] = field(default_factory=dict)

    @property
    def initial(self) -> tuple[int, ...]:
        """Return the processes that run before the change."""
        return tuple(index for index, process in enumerate(self.processes) if process.starts_s is None)

    def shares_whole_brokers(self, members: int) -> bool:
        """Return whether so many members are given whole brokers instead of queues (``allocate4Pop``)."""
        sharing = self.strategies[BEFORE]
        return isinstance(sharing, PopSharing) and sharing.shares_all(members)

    @property
    def resizes(self) -> bool:
        """True when a topic gets other queues on a broker: a client that has the whole broker pops them at once."""
        return isinstance(self.request.change, QueueCount)

    @property
    def goes_back_and_forth(self) -> bool:
        """True when queues may return to the client that had them: brokers that allocate learn of a new route one by
        one.

        A queue's pause is then the one before its new owner's first delivery, whichever member delivers it afterwards.
        """
        return self.route_changes and self.request.is_broker_allocated and not self.request.pops

    @property
    def present(self) -> Booleans:
        """Return which queues are there after the change."""
        present = np.zeros(len(self.queues), dtype=bool)
        present[np.concatenate([topic.queues[AFTER] for topic in self.topics])] = True
        return present

    @property
    def groups(self) -> Indexes:
        """Return for each process whether it is of the group itself or of the one that takes over: BEFORE or AFTER."""
        return np.array([process.group for process in self.processes], dtype=np.intp)

    @property
    def resumed(self) -> Indexes:
        """Return for each process the one that stood still and goes on as it, -1 for all others."""
        return np.array(
            [-1 if process.resumes is None else process.resumes for process in self.processes], dtype=np.intp
        )

    @property
    def resubscribes(self) -> bool:
        """True where clients come back with another subscription."""
        return isinstance(self.request.change, SubscriptionChange)

    @property
    def subscribes(self) -> Booleans:
        """Return by process and queue whether the process subscribes to the queue's topic.

        The group's member list knows no topics, so that queues are given to members that do not, and nobody reads them
        (``RebalanceImpl#rebalanceByTopic``).
        """
        return np.array(
            [
                [self.subscribes_to(process, queue.topic) for queue in self.queues]
                for process in range(len(self.processes))
            ],
            dtype=bool,
        )

    def subscribes_to(self, process: int, topic: str) -> bool:
        """Return whether a process subscribes to a topic."""
        change = self.request.change
        if not isinstance(change, SubscriptionChange):
            return True
        return topic in (change.to if self.processes[process].subscription == AFTER else change.before)

    @property
    def partitioned(self) -> Booleans:
        """Return by process and broker whether the change cuts the one off from the other, and not from all brokers."""
        change, shape = self.request.change, (len(self.processes), len(self.brokers))
        if not isinstance(change, Partition) or not change.brokers:
            return np.zeros(shape, dtype=bool)
        is_cut = np.array([self.clients[process.client].id in change.clients for process in self.processes], dtype=bool)
        partitioned: Booleans = is_cut[:, None] & np.array(
            [broker in change.brokers for broker in self.brokers], dtype=bool
        )
        return partitioned

    @property
    def partitioned_s(self) -> float:
        """Return how long clients are cut off from some brokers, 0 where none is."""
        change = self.request.change
        return change.for_s if isinstance(change, Partition) and change.brokers else 0.0

    @property
    def final(self) -> tuple[int, ...]:
        """Return the processes that run when all is over."""
        return tuple(index for index, process in enumerate(self.processes) if process.ends_s is None)


def build_scenario(request: ForecastRequest) -> Scenario:
    """Return the scenario of one request."""
    change = request.change
    before, after = _routes(request.queues, change)
    queues = tuple(sorted_queues({*before, *after}))
    brokers = tuple(sorted({queue.broker for queue in queues}))
    index_of = {queue: index for index, queue in enumerate(queues)}
    broker_of = np.array([brokers.index(queue.broker) for queue in queues], dtype=np.intp)
    rates, lags = _loads(request, queues)
    processes = find_processes(request.clients, request.client, change)
    return Scenario(
        request,
        (*request.clients, *newcomers(change)),
        processes,
        find_behaviour(processes, request.settings, request.is_never_balanced),
        queues,
        rates,
        lags,
        tuple(_topic(name, before, after, index_of, broker_of) for name, _ in topic_slices(queues)),
        brokers,
        (request.strategy, change.to if isinstance(change, StrategyChange) else request.strategy),
        set(before) != set(after),
        brokers.index(change.broker) if isinstance(change, BrokerDown) else None,
        brokers.index(change.broker) if isinstance(change, BrokerUp) else None,
    )


def _routes(queues: Sequence[MessageQueue], change: Change) -> tuple[list[MessageQueue], list[MessageQueue]]:
    """Return the queues that consumers see before and after the change."""
    everything = list(queues)
    if isinstance(change, BrokerDown):
        return everything, [queue for queue in queues if queue.broker != change.broker]
    if isinstance(change, BrokerUp):
        return [queue for queue in queues if queue.broker != change.broker], everything
    if isinstance(change, QueueCount):
        location = (change.topic, change.broker)
        others = [queue for queue in queues if queue.place != location]
        return everything, [*others, *(MessageQueue(*location, number) for number in range(change.read_queues))]
    return everything, everything


def _topic(
    name: str,
    before: Iterable[MessageQueue],
    after: Iterable[MessageQueue],
    index_of: dict[MessageQueue, int],
    broker_of: Indexes,
) -> Topic:
    queues = tuple(
        np.array(sorted(index_of[queue] for queue in route if queue.topic == name), dtype=np.intp)
        for route in (before, after)
    )
    return Topic(name, (queues[0], queues[1]), (np.unique(broker_of[queues[0]]), np.unique(broker_of[queues[1]])))


def _loads(request: ForecastRequest, queues: Sequence[MessageQueue]) -> tuple[Floats, Floats]:
    """Return rate and lag of every queue; where writeable queues come or go, the topic's messages spread over them.

    Producers go round all writeable queues of their topic (``TopicPublishInfo#selectOneMessageQueue``).
    """
    rate = dict(zip(request.queues, request.rates, strict=True))
    lag = dict(zip(request.queues, request.lags, strict=True))
    change = request.change
    if isinstance(change, QueueCount):
        location = (change.topic, change.broker)
        if change.write_queues != sum(queue.place == location for queue in rate):
            total = sum(rate[queue] for queue in rate if queue.topic == change.topic)
            others = [queue for queue in rate if queue.topic == change.topic and queue.place != location]
            written = [*others, *(MessageQueue(*location, number) for number in range(change.write_queues))]
            rate = {queue: value for queue, value in rate.items() if queue.topic != change.topic}
            rate.update(dict.fromkeys(written, total / max(len(written), 1)))
    return np.array([rate.get(queue, 0.0) for queue in queues]), np.array([lag.get(queue, 0.0) for queue in queues])
