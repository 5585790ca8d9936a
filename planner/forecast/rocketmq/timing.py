"""Every constant of the simulation with its source: what the classes fix, and what only measuring shows.

``rocketmq.md`` is the engineering reference; "second series" are its 76 transitions on brokers 4.9.7 and 5.5.0.
"""

from dataclasses import dataclass

from planner.forecast.common.delay_ranges import DelayRange
from planner.forecast.common.request_fields import Version

CHANNEL_SCAN_S = 10.0
"""``ConsumerManager#scanNotActiveChannel`` runs every 10 s (``ClientHousekeepingService``)."""

LONG_POLL_S = 15.0
"""A broker holds a pull that finds nothing for 15 s (``PullRequestHoldService``) and answers then, in any case."""

ANSWERED_S = (0.05, 5.1)
"""Last word of a member that pulls to the broker's last answer to it, tailed.

Of eight channels of frozen or cut off clients to brokers that they pulled from, six were closed 0.1, 0.1, 0.1, 2.9, 3.8
and 4.2 s after the idle time, one 14.7 s (the retry queue's), one 5.1 s (notified of another member); to brokers that
they did not pull from, 4.0, 5.4 and 13.8 s before it (5.5.0, idle after 25 and 60 s, by hand).
"""

ORDERLY_RETRY_AFTER_LOCK_S = 0.5
"""``RebalanceImpl#updateProcessQueueTableInRebalance`` asks again 500 ms after a lock failed (5.0+)."""

BATCHED_NOTIFICATION_S = 15.0
"""``DefaultConsumerIdsChangeListener`` with ``realTimeNotifyConsumerChange`` off: every 15 s (5.x)."""

PULL_TIMEOUT_S = 30.0
"""A client gives up a pull after 30 s (``consumerTimeoutMillisWhenSuspend``) and tries again a second later."""

SYN_RETRY_S = 1.0
"""Linux asks for a connection again after one second (RFC 6298), then after three."""
NETWORK_TIMEOUT_S = 3.0
"""Heartbeats and member queries give up after 3 s and close their connection (``closeSocketIfTimeout``, true in 4.9.7
to 5.5.0), attempts to connect do after 3 s, too (``NettySystemConfig``)."""

CLOSING_WAIT_S = 1.0
"""``PullMessageService#shutdown`` gives pulls that were put off one second, after the client has unregistered."""

POP_THRESHOLD = 96 + 32
"""A client pops on while no more than ``popThresholdForQueue`` messages (96) of a queue wait, 32 at once."""

OFFSETS_FLUSHED_S = 5.0
"""A broker stores offsets every 5 s (``flushConsumerOffsetInterval``), and forgets so much as it dies."""

POP_TIMEOUT_S = 25.0
"""A client gives up a pop after 25 s: the 15 s that a broker may hold it, and 10 more (``PullAPIWrapper#popAsync``)."""

FIRST_HEARTBEAT_S = 1.0
"""A client's timer sends its first heartbeat a second after it was set up (``MQClientInstance#startScheduledTask``)."""

LEAST_SERVICE_S = 2e-5
"""A listener call takes at least this long: no consumer on record delivers more than 50 000 a second and thread."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What client releases of one kind have in common.

    ``min_gap`` seconds lie between two rebalances (``RebalanceService#run``); ``first_pull_s`` passes before a queue
    that was added is pulled (``dispatchPullRequest``); ``has_version_race``: the first pull may quote a subscription
    version that no heartbeat has carried yet; ``retries_lock``: a lock that failed is asked for again soon, not at the
    next tick; ``unlocks_late``: an owner that drops a queue with cached messages unlocks it 20 s later;
    ``listener_wait_s`` is how long an owner that drops an orderly queue waits for the running call
    (``removeUnnecessaryMessageQueue``); ``registers_on_connect``: an active channel brings a heartbeat
    (``enableHeartbeatChannelEventListener``).
    """

    name: str
    has_min_gap: bool
    first_pull_s: float
    has_version_race: bool
    retries_lock: bool
    unlocks_late: bool
    listener_wait_s: float
    registers_on_connect: bool


OLD = Generation("4.9", False, 0.0, True, False, True, 1.0, False)
MIDDLE = Generation("5.0-5.1", False, 0.5, False, True, True, 1.0, False)
NEW = Generation("5.2+", True, 0.5, False, True, False, 0.5, True)

OLDEST_MODELLED, NEWEST_MODELLED = Version(4, 9), Version(5, 5)
ORDERLY_START_FIXED = Version(4, 9, 5)
"""Before it a queue locked in a round was not marked locked until the next renewal (issues #2621, #5465)."""


def generation(client: Version) -> Generation:
    """Return the generation that models this client: the nearest older one, the oldest for what came before it."""
    if client < Version(5, 0):
        return OLD
    return MIDDLE if client < Version(5, 2) else NEW


def has_model(version: Version) -> bool:
    """True for releases whose classes were read or measured: 4.9 to 5.5."""
    return (4, 9) <= (version.major, version.minor) <= (5, 5)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the classes leave open: delays of machine and network, and odds of races (docs/conformance.md).

    Each pair is an even delay range, or a tailed one where its line says so (``delay_ranges.draw_tailed``); each single
    figure a probability or a length named in its line. "Own runs" are the calibration half of ``tests/conformance``.
    """

    start_to_construction_s: DelayRange = (0.28, 1.4)
    """``start()`` to where the gap of 5.2+ begins to count, tailed: first rebalances came 1.33-1.62 s after ``start()``
    on a calm machine, up to 2.4 s on a busy one (own runs)."""
    construction_to_heartbeat_s: DelayRange = (0.05, 1.4)
    """From there to the first heartbeat, tailed: members reacted 0.5-0.6 s after ``start()`` on a calm machine, half of
    them 0.6-0.9 s on a busy one, the slowest 2.7 s (own runs)."""
    polling_heartbeat_s: DelayRange = (0.02, 0.5)
    """The same for who polls, tailed, beyond the second that its timer waits."""
    register_step_s: DelayRange = (0.005, 0.3)
    """One broker's registration to the next one's, cold, tailed: 0.03 s, and 0.8 s once, in brokers' logs (own runs).

    Who asks the broker that does not know the newcomer yet reacts a second late (5.2+): 39 % of the second series.
    """
    unregister_step_s: DelayRange = (0.002, 0.1)
    """The same for unregistering, tailed. A process does it once in its process, so it is cold, too: 11 of 27 reactions
    came a second late (5.2+, own runs), so the second broker hears of it after the members have asked. With all
    clients in one process, where it is warm, 1 of 41 did (second series)."""
    shutdown_s: DelayRange = (0.001, 0.02)
    """Signal to the first UNREGISTER_CLIENT when nothing is waited for: the first member reacted 0.012-0.06 s after the
    signal (own runs)."""
    closing_waits: float = 0.65
    """Odds that a shutdown waits for pulls that were put off: 9 of 14 took 1.02-1.12 s, the others 0.02-0.16 s."""
    reset_noticed_s: DelayRange = (0.001, 0.03)
    """Death of a process to the brokers' close events (detection "about 0", 3.12)."""
    reset_step_s: DelayRange = (0.0, 0.02)
    """How much later one broker notices than another, tailed: after 8 of 27 crashes a member was a second late, on calm
    machines too (5.2+, own runs); after none in the second series."""
    notified_s: DelayRange = (0.001, 0.01)
    """Change of a broker's table to the notification of a member (at most 0.1 s, 3.12)."""
    notification_lost: float = 0.0
    """Odds that a member is not notified: one-way requests with 10 ms to go out (3.2). None was lost in what we saw."""
    query_s: DelayRange = (0.001, 0.006)
    """One member list request, and one offset request, each."""
    pull_s: DelayRange = (0.0, 0.11)
    """First pull sent to first delivery, 5.x, tailed: 0.503-0.57 s after the queue is gained, 0.5 s of them the fixed
    delay (own runs)."""
    immediate_pull_s: DelayRange = (0.001, 0.1)
    """The same for 4.9, which pulls in the midst of its round: 0.007-0.03 s, 1.0-1.03 s with the retry (own runs)."""
    pull_step_s: DelayRange = (0.0, 0.004)
    """How much later than its process's first one the pull of a queue is answered."""
    cold_pull_s: DelayRange = (0.004, 0.12)
    """What a new process's first pull takes longer, tailed: half of them 0.05 s, 0.02-0.13 s with 5.x (own runs)."""
    tick_jitter_s: DelayRange = (0.0, 0.6)
    """How far members' ticks lie apart although one notification aligned them: 0.6 s seen with 5.3.3 (3.12)."""
    version_race_lost: float = 0.5
    """Share of moved queues whose first pull is refused with 4.9 (second series: about half)."""
    heartbeat_lost: float = 0.036
    """Odds that the heartbeat after a starting process's first rebalance is dropped (5.2+): 4 of 112 starts took
    nothing for 3.6 to 30 s, none of 120 of older clients (own runs)."""
    stale_version_window_s: DelayRange = (0.0004, 0.002)
    """How long a pull of an unmoved queue may be refused after a change (9 and 5 of 30 transitions)."""
    overtaking: DelayRange = (1.0, 1.3)
    """By how much the oldest unfinished call outlives the service time: range of service times, unknown."""
    interrupted_delivered: DelayRange = (0.4, 1.0)
    """Share of interrupted listener calls that come again: 3 of 3, 4 of 6, 3 of 5 (own runs); others are sent back in
    time and come from the retry topic."""
    first_rebalance_s: DelayRange = (0.0, 0.35)
    """How much later a process that starts rebalances for the first time than it has registered, tailed: the first
    reaction of another member came 0.01-0.49 s earlier, mostly 0.01-0.12 s (4.9 and 5.1, own runs)."""
    listener_lock_s: DelayRange = (0.0005, 0.004)
    """Drop of an orderly queue whose listener is idle to the unlock at the broker."""
    resumed_timer_s: DelayRange = (0.0, 0.08)
    """Waking of a process that stood still to its heartbeat, where one was due."""
    resumed_rebalance_s: DelayRange = (0.03, 0.11)
    """The same to its first rebalance (by hand). 9 of 14 had registered by then and kept their queues (10 by hand, 4
    own runs)."""
    resumed_pull_s: DelayRange = (0.0, 0.35)
    """Waking of a process that stood still to its first delivery, tailed, all queues alike: 0.001-0.21 s, and
    0.02-0.24 s with the retry (own runs)."""
    resumed_pull_lost: float = 0.3
    """Odds that a process resumes to give up a pull before it reads the answer that has come: of 13 frozen clients 4
    delivered some queue a second late (10 by hand, 3 own runs)."""
    resumed_polled_pull_lost: float = 1.0
    """The same for who polls, each of whose threads waits for one answer (``ResponseFuture#waitResponse``): both of 2
    clients that kept their queues after 40 s, all 6 queues, delivered them a second late (by hand, a busy machine)."""
    ack_s: DelayRange = (0.0, 0.01)
    """End of a popped message's call to its acknowledgement at the broker."""
    pop_closing_s: DelayRange = (0.01, 0.2)
    """Signal to where a client that pops closes its connections, so that no call is acknowledged any more, tailed."""
    popped_unread_s: DelayRange = (0.0, 0.2)
    """For how long a broker gives messages to a client that dies before it has read them, tailed: two of 10 to 20 a
    second, two crashes, a busy machine (by hand)."""
    revive_s: DelayRange = (2.2, 4.8)
    """End of ``popInvisibleTime`` to the next delivery. By the classes 2 s at least (``PopReviveService``); 72 messages
    took 2.19 to 4.76 s, most of them 3.0 to 3.3 s (nine changes, a busy machine, by hand)."""
    broker_start_s: DelayRange = (2.0, 6.0)
    """Start of a broker's JVM to its registration at the name server."""


DEFAULT = Calibration()
