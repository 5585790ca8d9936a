"""``GroupModel`` of a RocketMQ group."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from planner.allocation.registry import KINDS, find_strategy, runnable_strategy
from planner.allocation.rocketmq import Config, ConsistentHash
from planner.allocation.strategy import Strategy
from planner.errors import BadInputError
from planner.forecast.common.rolling_update import roll
from planner.forecast.rocketmq.request.changes import (
    BrokerDown,
    Change,
    Join,
    Leave,
    QueueCount,
    Restart,
    RollingUpdate,
    newcomers,
)
from planner.forecast.rocketmq.request.completion import checked
from planner.forecast.rocketmq.request.request import ForecastRequest
from planner.model.machine_rooms import with_new_rooms
from planner.model.queues import Queue, message_queues
from planner.model.snapshot import POP, GroupSnapshot
from planner.simulation.leaving import Leaving
from planner.simulation.need import Need
from planner.simulation.outcome import CandidateOutcome, DrawnAnew
from planner.simulation.rocketmq import request
from planner.simulation.rocketmq.config_lists import listed_newcomers, lists_to_write
from planner.simulation.rocketmq.grpc_clients import with_grpc_cost
from planner.simulation.rocketmq.member_draws import Future, draw_anew
from planner.simulation.rocketmq.newcomer_draws import members_without_room, some_groups, why_not_drawn
from planner.simulation.rocketmq.queues import (
    fresh_owners,
    knows_newcomers,
    leaving_queues,
    own_options,
    simulate_queues,
    unsettled_by_strategy,
    why_no_more,
)
from planner.simulation.rocketmq.sharing import shares_messages
from planner.simulation.rocketmq.threads import more_threads
from planner.simulation.rocketmq.topics import topics_of
from planner.simulation.rocketmq.virtual_nodes import HASH, evening_virtual_nodes

STRATEGIES = tuple(KINDS)
"""What is compared, where its parameters are known."""


@dataclass(frozen=True, slots=True)
class RocketmqModel:
    """Each member computes its own queues, topic by topic; where the group pops, members share messages instead."""

    compared: ClassVar[tuple[str, ...]] = ("AVG", "AVG_BY_CIRCLE")

    snapshot: GroupSnapshot

    def shares_messages(self) -> bool:
        """Return whether every member is given every queue, at every count of members."""
        return shares_messages(self.snapshot)

    def busiest_fraction(self, members: int) -> None:  # noqa: ARG002 - so it is for any number
        """Return ``None``: whichever member has time takes the next message."""
        return

    def most_members(self) -> None:
        """Return ``None``: no broker bounds them."""
        return

    def can_compute(self) -> bool:
        """Return whether the strategy and its parameters are known, and each member's room where rooms count."""
        if self.shares_messages():
            return True
        strategy = self._strategy
        return strategy is not None and not members_without_room(self.snapshot, strategy)

    def unsupported_strategy(self) -> str | None:
        """Return in a sentence what is not known of the strategy or of newcomers; ``None`` where all is."""
        snapshot = self.snapshot
        if snapshot.strategy == POP:
            return None  # whether its members share messages is a question of the group, not of the strategy
        strategy = runnable_strategy(snapshot.strategy, snapshot.strategy_options)
        if strategy is None:
            return (
                f"strategy {snapshot.strategy} needs parameters that cannot be seen from outside: "
                "state them in spec.strategyOptions"
            )
        return None if knows_newcomers(snapshot, strategy) else why_not_drawn(snapshot, strategy)

    def unsettled_queues(self) -> int | None:
        """Return how many queues the members own otherwise than the strategy says; ``None``: parameters unknown."""
        return unsettled_by_strategy(self.snapshot)

    def divided_sizes(self, strategy: str | None) -> tuple[int, ...]:
        """Return the queues of each topic; of all topics together where lists name them."""
        sizes = topics_of(self.snapshot).sizes
        return (sum(sizes),) if strategy == "CONFIG" else sizes

    def draws_newcomers(self) -> bool:
        """Return whether the strategy goes by client ids, those of lists aside, which are known."""
        strategy = self._strategy
        return strategy is not None and not strategy.is_positional and not isinstance(strategy, Config)

    def goes_by_names(self, strategy: str) -> bool:
        """Return whether the strategy hashes or lists client ids, or members share messages."""
        return self.shares_messages() or not find_strategy(strategy, own_options(self.snapshot, strategy)).is_positional

    def why_no_more(self, strategy: str) -> str | None:
        """Return why no newcomer can be simulated: its machine room is not known."""
        return why_no_more(self.snapshot, strategy)

    def simulate(self, members: int, strategy: str, staying: Sequence[str] | None) -> CandidateOutcome:
        """Return what so many members would mean."""
        return simulate_queues(self.snapshot, members, strategy, staying)

    def fresh_owners(self, clients: Sequence[str]) -> Mapping[Queue, str | None]:
        """Return what the strategy gives to these clients."""
        return fresh_owners(self.snapshot, clients)

    def fresh_unknowns(self) -> tuple[str, ...]:
        """Return that ids decide, where they do."""
        name = self.snapshot.strategy
        if find_strategy(name or "", self.snapshot.strategy_options).is_positional:
            return ()
        return (f"who owns what: {name} goes by client ids, and those of the first members are not known",)

    def leaving(self) -> Leaving:
        """Return what the stop of any members moves."""
        return leaving_queues(self.snapshot)

    def cost_by_rule(self, outcome: CandidateOutcome) -> CandidateOutcome | None:
        """Return the outcome with what rules of proxy and client say of a group of gRPC clients."""
        return with_grpc_cost(outcome, self.snapshot) if self.snapshot.strategy == POP else None

    def request(
        self,
        outcome: CandidateOutcome,
        end: int,
        change: Change | None = None,
        producers: Mapping[str, str] | None = None,
    ) -> ForecastRequest:
        """Return the forecast's request, by what the members report of themselves."""
        return request.request(outcome, self.snapshot, end, change, producers)

    def requests(self, outcome: CandidateOutcome, end: int) -> list[ForecastRequest]:
        """Return one request for each of a few sets of ids where the strategy reads names.

        Under CONSISTENT_HASH itself each trial draws ids of its own. Raises ``BadInputError`` also where lists of
        CONFIG come first: by the present ones the change would seem to cost nothing.
        """
        snapshot = self.snapshot
        if outcome.strategy == snapshot.strategy and self.lists_to_write(outcome.members):
            raise BadInputError("the lists of CONFIG have to be written first, and who reads them when is not known")
        if listed := listed_newcomers(snapshot, outcome):
            return [_with_ids(self.request(outcome, end), listed)]
        if outcome.drawn is None or isinstance(self._strategy, ConsistentHash):
            return [self.request(outcome, end)]
        requests = []
        for group in some_groups(snapshot, outcome.members):
            options = with_new_rooms(snapshot.strategy_options, group.rooms)
            known = request.request(outcome, replace(snapshot, strategy_options=options), end)
            requests.append(_with_ids(known, group.newcomers))
        return requests

    def lists_to_write(self, members: int) -> Mapping[str, Sequence[Queue]] | None:
        """Return the lists of ``CONFIG`` that so many members need first."""
        return lists_to_write(self.snapshot, members)

    def strategies(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield RocketMQ's own strategies, with CONSISTENT_HASH also at the virtual nodes that even it out most."""
        for name in STRATEGIES:
            yield name, {}
        are_known = knows_newcomers(self.snapshot, ConsistentHash())
        if (nodes := evening_virtual_nodes(self.snapshot, are_ids_known=are_known)) is not None:
            yield HASH, {"virtual_nodes": nodes}

    def drawn_anew(self, strategy: str, futures: Sequence[Future]) -> tuple[DrawnAnew, ...] | None:
        """Return what these futures mean with all ids drawn; ``None`` where ids decide nothing, or are known."""
        snapshot = self.snapshot
        runs = find_strategy(strategy, own_options(snapshot, strategy))
        if runs.is_positional or isinstance(runs, Config) or knows_newcomers(snapshot, runs):
            return None
        return None if why_not_drawn(snapshot, runs) else draw_anew(snapshot, runs, futures)

    def assumptions(self, outcome: CandidateOutcome) -> Iterator[str]:
        """Yield what the forecast takes for granted."""
        return request.assumed(outcome, self.snapshot)

    def leave_change(self, clients: Sequence[str], how: str) -> Leave:
        """Return the change by which these clients end."""
        return Leave(tuple(clients), how)

    def restart_change(self, clients: Sequence[str], how: str, interval_s: float, stagger_s: float) -> Restart:
        """Return the change by which these clients end and start again."""
        return Restart(tuple(clients), how, interval_s, stagger_s)

    def roll_change(self, surge: int, unavailable: int, **seconds: float) -> RollingUpdate:
        """Return the change by which a Deployment replaces the pods of all clients."""
        return RollingUpdate((), roll(len(self.snapshot.clients), surge, unavailable, start_s=0.0, **seconds))

    def with_topics(self, change: RollingUpdate, topics: Iterable[str]) -> RollingUpdate:  # noqa: ARG002
        """Raise ``BadInputError``: a topic's queues are given to clients that do not subscribe to it, too."""
        raise BadInputError(
            f"clients of group {self.snapshot.group} with different subscriptions must not be mixed: stop all, then "
            "start all"
        )

    def broker_loss(self, broker: str) -> BrokerDown:
        """Return the death of a broker."""
        return BrokerDown(broker)

    def growth_changes(self, topic: str, each: int) -> list[QueueCount]:
        """Return one change for each broker of the topic."""
        return [QueueCount(topic, broker, each, each) for broker in self._brokers(topic)]

    def growth_question(self, topic: str, each: int) -> str:
        """Return the question for read and write queues on every broker."""
        brokers = ", ".join(self._brokers(topic))
        return (
            f"Does topic {topic} have {each} read queues, and after them {each} write queues, on each of {brokers} now?"
        )

    def shrink_changes(self, topic: str, each: int) -> list[QueueCount]:
        """Return one change for each broker that has more queues of the topic."""
        return [QueueCount(topic, broker, each, each) for broker in self._brokers(topic, more_than=each)]

    def shrink_questions(self, topic: str, each: int, given_up: str) -> tuple[str, str]:
        """Return the questions for write queues, and after them for read queues.

        Producers poll routes each 30 s (``ClientConfig.pollNameServerInterval``); a minute has one poll to spare.
        """
        brokers = ", ".join(self._brokers(topic, more_than=each))
        return (
            f"Has topic {topic} had {each} write queues on each of {brokers} for a minute, its read queues as before?",
            f"Has every other group that consumes {topic} worked off {given_up}, and does the topic have {each} read "
            f"queues on each of {brokers} now?",
        )

    def instead_of_pods(self, need: Need) -> str | None:
        """Return what more threads or larger batches would do, by what the members report of theirs."""
        return more_threads(self.snapshot, need)

    def new_group_conditions(self) -> Iterator[str]:
        """Yield that nothing waits for redelivery: retry topics are the group's own."""
        yield (
            f"messages that wait for redelivery to group {self.snapshot.group}, in its retry topic or on their way "
            "there, are consumed or given up"
        )

    @property
    def _strategy(self) -> Strategy | None:
        return runnable_strategy(self.snapshot.strategy, self.snapshot.strategy_options)

    def _brokers(self, topic: str, more_than: int = 0) -> list[str]:
        """Return the brokers that have more than so many queues of the topic."""
        queues = message_queues(state.queue for state in self.snapshot.data_queues)
        return sorted({queue.broker for queue in queues if queue.topic == topic and queue.number >= more_than})


def _with_ids(known: ForecastRequest, ids: Sequence[str]) -> ForecastRequest:
    """Return the request with these ids of the joining clients."""
    pairs = zip(newcomers(known.change), ids, strict=True)
    return checked(replace(known, change=Join(tuple(replace(client, id=name) for client, name in pairs))))
