"""A request of ``planner forecast`` for RocketMQ: design.md section 4."""

from dataclasses import dataclass, field
from typing import ClassVar

from planner.allocation.rocketmq import PopSharing
from planner.allocation.strategy import Strategy
from planner.forecast.common.request_fields import DEFAULT_TRIALS, Version
from planner.forecast.rocketmq import timing
from planner.forecast.rocketmq.request.changes import BlueGreen, BrokerUp, Change, Client, newcomers
from planner.forecast.rocketmq.request.producers import Producers
from planner.forecast.rocketmq.request.settings import BROADCASTING, Consumer, Settings
from planner.model.queues import MessageQueue


@dataclass(frozen=True, slots=True)
class ForecastRequest:
    """One checked request. ``rates`` are messages per second and ``lags`` messages, in the order of ``queues``."""

    system: ClassVar[str] = "rocketmq"

    client: Version
    broker: Version
    group: str
    strategy: Strategy
    queues: tuple[MessageQueue, ...]
    rates: tuple[float, ...]
    lags: tuple[float, ...]
    clients: tuple[Client, ...]
    service_time_s: float
    settings: Settings
    change: Change
    trials: int = DEFAULT_TRIALS
    seed: int = 1
    warnings: tuple[str, ...] = ()
    consumer: Consumer = Consumer.PUSH
    commits: frozenset[str] = frozenset()
    producers: Producers = field(default_factory=Producers)

    @property
    def generation(self) -> timing.Generation:
        """Return the client generation that models this request."""
        return timing.generation(self.client)

    @property
    def is_broker_allocated(self) -> bool:
        """True when members ask a broker for their queues, not for the members (``RebalancePushImpl#clientRebalance``).

        Orderly and broadcasting clients allocate for themselves whatever the setting.
        """
        allocates = self.orderly or self.broadcasts
        return self.pops or not (self.settings.is_on("clientRebalance") or allocates)

    @property
    def broadcasts(self) -> bool:
        """True when every client consumes every queue."""
        return self.settings.text("messageModel") == BROADCASTING

    @property
    def is_never_balanced(self) -> bool:
        """True when no round of a member counts as balanced (``RebalanceImpl#updateMessageQueueAssignment``).

        Who lets the broker allocate and does not pop subscribes the group's POP retry topic, too. It is not there
        unless somebody popped, so that the broker has no answer for it.
        """
        return self.is_broker_allocated and not self.pops

    @property
    def pops(self) -> bool:
        """True when members share queues in POP mode."""
        return isinstance(self.strategy, PopSharing)

    @property
    def shares_anew(self) -> bool:
        """True where members that share queues begin with whole brokers, or a broker that lists few gives them others.

        That is so after a blue-green change, and where a broker starts: meanwhile messages wait, and are popped and
        dropped by those who come first.
        """
        if not isinstance(self.strategy, PopSharing):
            return False
        if isinstance(self.change, BlueGreen):
            return not self.strategy.shares_all(len(self.change.clients))
        return isinstance(self.change, BrokerUp) and not self.strategy.shares_all(len(self.clients))

    @property
    def polls(self) -> bool:
        """True when the application asks for messages, by whichever class, and no listener is called."""
        return self.consumer != Consumer.PUSH

    @property
    def reports_commits(self) -> bool:
        """True when it is known which offsets are stored: how much is redelivered follows from that."""
        commits = self.settings.is_on("autoCommit") or "commit_after_poll" in self.commits
        return self.consumer == Consumer.PUSH or (self.consumer == Consumer.LITE_PULL and commits)

    @property
    def orderly(self) -> bool:
        """True when the group consumes in order."""
        return any(client.orderly for client in (*self.clients, *newcomers(self.change)))
