"""What is true of one group at one time, how complete it is and how old: the ground every decision stands on."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from planner.model.deployments import Deployment
from planner.model.membership import KafkaMember, OtherGroup
from planner.model.past_load import PastLoad
from planner.model.queues import Queue
from planner.model.times import check_time


@dataclass(frozen=True, slots=True)
class QueueState:
    """One queue at the snapshot's time; rates in messages per second, ``None`` where they are unknown.

    ``arrival_rate`` is the mean over the window, ``upper_arrival_rate`` the recent upper rate (the policy's
    percentile over the window's intervals). Offsets and lag are ``None`` where no broker reported them. ``owner`` is
    the client that says it owns the queue; ``None`` when none does or the members did not answer. ``expected_share`` is
    the part of the group's arrivals (0 to 1) that is expected to come into this queue next; unknown is ``None``.
    ``racks`` are those of a Kafka partition's replicas, sorted; ``None`` where no member has a rack, so that nobody
    asks, or they are unknown.
    """

    queue: Queue
    broker_offset: int | None
    consumer_offset: int | None
    lag: int | None
    arrival_rate: float | None
    upper_arrival_rate: float | None
    consumption_rate: float | None
    owner: str | None
    expected_share: float | None = None
    racks: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """Messages per second that one consumer can do, and where the figure comes from (a sentence).

    Learned figures are the mean of so many ``observations`` of busy consumers, and lie between ``low`` and ``high``
    with 95 % confidence; both are ``None`` where it is not known how sure the figure is. ``is_lower_bound`` says that
    no consumer was observed busy: it can do so much, and perhaps more. ``slow_clients`` had work all the time and did
    much less than others do: the figure leaves them out. ``pod_messages_per_s`` is what one pod's members do together
    when all are busy, at least ``pod_low``, as ``pod_source`` says; ``None``: no pod was observed so, and no policy
    states it. Where a policy states the figure, ``measured_high`` is the most that busy consumers were observed to do
    (95 % confidence), as ``measured_source`` says; ``None``: none was observed busy.
    """

    messages_per_s: float
    source: str
    low: float | None = None
    high: float | None = None
    observations: int = 0
    is_lower_bound: bool = False
    slow_clients: tuple[str, ...] = ()
    pod_messages_per_s: float | None = None
    pod_low: float | None = None
    pod_source: str = ""
    measured_high: float | None = None
    measured_source: str = ""

    @property
    def sure_messages_per_s(self) -> float:
        """What one consumer can do at least, as far as that is known: decisions go by it."""
        return self.messages_per_s if self.low is None else self.low

    def within_pod(self, per_pod: int) -> "Capacity":
        """Return what one consumer can do while the others of its pod are busy, too: an even part of the pod's at most.

        ``per_pod`` consumers run in each pod. The same where the pod is no tighter bound or is not known.
        """
        pod = self.pod_messages_per_s
        if pod is None or per_pod == 1:
            return self
        share, sure = pod / per_pod, (pod if self.pod_low is None else self.pod_low) / per_pod
        if sure >= self.sure_messages_per_s:
            return self
        return replace(
            self,
            messages_per_s=min(self.messages_per_s, share),
            low=sure,
            high=None if self.high is None else max(min(self.high, share), sure),
        )


@dataclass(frozen=True, slots=True)
class SnapshotSection:
    """How good one part of the snapshot is: its age in seconds at the snapshot's time, the share present (0 to 1)."""

    name: str
    age_s: float
    completeness: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """The whole group over one span of the recent past, ``seconds`` long and ending at ``at`` (UTC).

    Rates are messages per second over all data queues, ``None`` where no queue's rate is known; ``lag`` is in
    messages and ``consumers`` counts the owners, both at the end. ``moved`` queues changed their owner within
    the span. ``lag`` counts the queues whose lag is known, ``None`` when there is none. ``is_gap`` says that
    samples are missing in it. Where metrics cover the span, ``moved`` is ``None`` and ``consumers`` may be: unknown.
    """

    at: datetime
    seconds: float
    arrival_rate: float | None
    consumption_rate: float | None
    lag: int | None
    consumers: int | None
    moved: int | None
    is_gap: bool


@dataclass(frozen=True, slots=True)
class MemberPod:
    """The pod that a client runs in."""

    client: str
    pod: str


@dataclass(frozen=True, slots=True)
class ClientSetup:
    """How one RocketMQ client is set up, as far as it reports: what a forecast of pauses and duplicates rests on.

    ``version`` is its release (``5.5.0``), ``call_s`` the mean seconds of one listener call in its last minute, topics
    weighted by their rates; ``None`` while it consumes nothing. ``settings`` are its properties by its own names.
    ``handled_per_s`` are the messages per second of that minute whose calls ``call_s`` is the time of, and
    ``cached_messages`` those that it has fetched and not yet consumed; ``None`` where it reports nothing.
    """

    client: str
    language: str
    version: str | None
    orderly: bool | None
    threads: int | None
    call_s: float | None
    settings: tuple[tuple[str, str], ...] = ()
    handled_per_s: float | None = None
    cached_messages: int | None = None


@dataclass(frozen=True, slots=True)
class KafkaTiming:
    """How a Kafka group's clients are set up, as its policy states it: what a forecast of pauses rests on.

    ``client`` is a release of the Java client or ``librdkafka 2.12.1``, ``record_s`` how long one record takes in the
    poll loop, ``None`` where it follows from the capacity. ``settings`` go by the clients' names.
    """

    client: str
    broker: str
    record_s: float | None = None
    commits_on_revoke: bool = False
    settings: tuple[tuple[str, bool | int | str], ...] = ()


LEAST_IDS_PERCENTILE, DEFAULT_IDS_PERCENTILE = 50.0, 90.0


@dataclass(frozen=True, slots=True)
class NewPods:
    """What the policy states of pods that a plan is to start; ``None`` and nothing where it does not say.

    ``room`` is their machine room (RocketMQ), ``topics`` and ``rack`` are those of their members (Kafka), ``pod_cidr``
    is the network that their addresses come from. Of all client ids that they may have, decisions go by the outcome at
    ``ids_percentile`` (50 to 100) of the busiest load.
    """

    room: str | None = None
    topics: tuple[str, ...] = ()
    pod_cidr: str | None = None
    ids_percentile: float = DEFAULT_IDS_PERCENTILE
    rack: str | None = None


NO_STATEMENT = NewPods()

STANDS_S = 300.0
"""No batch takes longer (``max.poll.interval.ms``, Kafka 4): a queue without a commit for so long stands still."""

POP = "POP"
"""The strategy of a group of gRPC clients: none allocates queues, brokers hand messages to whichever member asks."""

SHARE = "share"
"""The strategy of a Kafka share group under its only built-in assignor, ``simple`` (KIP-932)."""


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """Everything that a decision on one group needs; enough to replay it byte for byte.

    ``at`` is the time that the snapshot speaks of, in UTC: the newest sample's time for a live group, the
    end of the run's interval for a scheduled one. ``clients`` and ``queues`` are sorted, as the clients sort
    them. ``strategy`` is ``None`` when it is not known; ``capacity`` likewise. ``problems`` are sentences.
    ``deployment`` is the one that serves the group, ``pods`` says which pod each client runs in; without a policy that
    lets us read Kubernetes they are not known.
    ``strategy_options`` are the strategy's parameters, spelt as ``planner allocate`` takes them.
    ``members`` are a Kafka group's, since its assignors ask for more than a name; RocketMQ's need none.
    ``setups`` describe how each of a RocketMQ group's clients runs, in their order; Kafka's brokers do not know, so
    that ``timing`` is what the policy states of a Kafka group's.
    ``notifies_changes`` is whether every broker notifies the group's members of others that come and go.
    ``unlisted_consumers`` says in a sentence why ``clients`` are not all, or none, and the others unknown: consumption
    shows that no listed member explains, or clients of a RocketMQ proxy would not be listed. ``None``: ``clients`` are
    all.
    ``shared_queues`` counts the data queues that several members own at once: all of them in a group that pops, and in
    a share group.
    ``blocked_queues`` are those whose member hangs or passes them over, as far as its other work shows it.
    ``rewound_queues`` are those whose commits went back in the window, by more than a move takes them back; empty where
    all of them did at once, which is a reset that somebody asked for.
    ``percentile`` (0 to 100) of the window's minutes is each queue's ``upper_arrival_rate``; ``None`` in files of a
    release that did not write it down.
    ``member_label`` is the pod label by which ``pods`` were matched, empty without one; ``None`` in files of a release
    that did not write it down.
    ``recent`` shows how the group came here, oldest first.
    ``members_per_pod`` is how many members each pod runs, ``None`` where that is unknown;
    ``members_per_pod_source`` says in a sentence where it comes from, or why it is unknown. ``uneven_pods`` names the
    pods that run another number of them. Files of a release that did not write it down are of groups with one member in
    each pod, the only ones that it planned for.
    ``new_pods`` is what the policy states of pods that do not run yet.
    ``other_groups`` are those that the same clients serve: one client rebalances for all of them.
    ``past_load`` is the load of the days before ``recent``, ``None`` where no former snapshot or server has it.
    """

    system: str
    cluster: str
    group: str
    at: datetime
    window_s: float
    strategy: str | None
    strategy_source: str
    orderly: bool | None
    threads: int | None
    clients: tuple[str, ...]
    queues: tuple[QueueState, ...]
    capacity: Capacity | None
    parts: tuple[SnapshotSection, ...]
    problems: tuple[str, ...] = ()
    recent: tuple[SeriesPoint, ...] = ()
    members: tuple[KafkaMember, ...] = ()
    deployment: Deployment | None = None
    pods: tuple[MemberPod, ...] = ()
    strategy_options: dict[str, Any] = field(default_factory=dict)
    setups: tuple[ClientSetup, ...] = ()
    notifies_changes: bool | None = None
    timing: KafkaTiming | None = None
    unlisted_consumers: str | None = None
    shared_queues: int = 0
    percentile: float | None = None
    blocked_queues: tuple[Queue, ...] = ()
    rewound_queues: tuple[Queue, ...] = ()
    member_label: str | None = None
    members_per_pod: int | None = 1
    members_per_pod_source: str = ""
    uneven_pods: tuple[str, ...] = ()
    new_pods: NewPods = NO_STATEMENT
    other_groups: tuple[OtherGroup, ...] = ()
    past_load: PastLoad | None = None

    def __post_init__(self) -> None:
        check_time(f"snapshot of group {self.group}", self.at)
        if self.past_load is not None and self.past_load.until > self.at:
            raise ValueError(f"snapshot of group {self.group} to know no load after {self.at.isoformat()}")

    @property
    def consumer_capacity(self) -> Capacity | None:
        """What one consumer can do while the others of its pod are busy, too; ``None`` where it is unknown."""
        return self.capacity and self.capacity.within_pod(self.members_per_pod or 1)

    @property
    def count(self) -> int:
        """Pods that run the members: a pod that lacks some is one all the same; members where that is unknown."""
        return -(-len(self.clients) // (self.members_per_pod or 1))

    def members_at(self, count: int) -> int:
        """Return how many members ``count`` pods run: those that are present at the present count, else all of each."""
        return len(self.clients) if count == self.count else count * (self.members_per_pod or 1)

    @property
    def data_queues(self) -> tuple[QueueState, ...]:
        """The queues of the subscribed topics, without the group's ``%RETRY%`` queues."""
        return tuple(state for state in self.queues if not state.queue.is_retry)

    @property
    def lag(self) -> int:
        """Messages behind, over all queues whose lag is known."""
        return sum(state.lag or 0 for state in self.queues)

    @property
    def standing_queues(self) -> tuple[Queue, ...]:
        """The blocked data queues, and those whose messages waited for a long window while nothing was consumed.

        A message that came within the window may be in its consumer's hands, and so may all in one of less than
        ``STANDS_S``.
        """
        blocked = frozenset(self.blocked_queues)
        return tuple(state.queue for state in self.data_queues if state.queue in blocked or self._stands(state))

    def _stands(self, state: QueueState) -> bool:
        arrived = (state.arrival_rate or 0.0) * self.window_s
        return self.window_s >= STANDS_S and state.consumption_rate == 0 and (state.lag or 0) > arrived + 0.5

    @property
    def unknown_lag(self) -> tuple[Queue, ...]:
        """The data queues whose lag is unknown."""
        return tuple(state.queue for state in self.data_queues if state.lag is None)
