"""Every constant of the simulation with its source: what the classes fix, and what only measuring shows.

``kafka.md`` is the engineering reference, "3.5 Observed" its 54 transitions on a broker 4.3.0.
"""

from dataclasses import dataclass

from planner.forecast.common.delay_ranges import DelayRange

LEAST_SERVICE_S = 1e-5
"""A record takes at least this long: no poll loop on record goes through more than 100 000 a second."""

POLL_TIMEOUT_S = 0.1
"""How long a poll waits that finds nothing. The application says it; 100 ms is what most write."""

LONGEST_AGE_S = 86_400.0
YOUNGEST_AGE_S = 10.0
"""A group whose last rebalance is unknown had it between ten seconds and a day ago, evenly in powers of ten."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the classes leave open: delays of machine and network.

    A delay range is even; *tailed* ones lie near their lower end mostly (``delay_ranges.draw_tailed``), *busy* ones do
    so in a trial in which little is busy (``ProcessTimes.delay``). Delays that the observations show have about the
    bounds that ``tests.conformance.kafka.fit`` reads off the calibration half. Those that none shows (``notified_s``,
    ``assigned_s``, ``trip_s``, ``overhead``) were set so that what was observed there, on a busy machine and on a calm
    one, is neither early nor late in the mean.
    """

    trip_s: DelayRange = (0.0003, 0.003)
    """One request and its answer."""
    start_s: DelayRange = (0.03, 1.8)
    """The first poll of a new process to its JoinGroup, tailed: class loading, connections, coordinator.

    0.03 s where other consumers run in the process already; 0.3 to 3 s of a young JVM on two busy cores.
    """
    registers: DelayRange = (0.02, 0.2)
    """At which part of ``start_s`` a group that is converted, or has been, lists a newcomer."""
    handled_s: DelayRange = (0.0, 0.25)
    """Answer of the coordinator to the member's next step, busy: what the machine does in between."""
    assign_s: DelayRange = (0.001, 0.008)
    """The leader's assignor, and its answer's way to the coordinator."""
    fetch_s: DelayRange = (0.003, 0.9)
    """Answer of SyncGroup to the first record, busy: callbacks, committed offsets, first fetch (3.5 Observed: c)."""
    consumer_fetch_s: DelayRange = (0.02, 0.65)
    """The same for the consumer protocol, whose client does each step in another thread."""
    cold_fetch_s: DelayRange = (0.0, 0.1)
    """What a process's first fetch takes longer, tailed."""
    acknowledge_s: DelayRange = (0.01, 0.1)
    """Consumer protocol: end of a revocation or taking to the heartbeat that reports it."""
    close_s: DelayRange = (0.002, 0.1)
    """Last record to LeaveGroup of a consumer that closes, tailed: commit, callbacks."""
    election_s: DelayRange = (0.1, 1.0)
    """The controller's decision to the first record from a partition's new leader: metadata, retries."""
    retransmit_s: DelayRange = (0.2, 0.22)
    """How long TCP waits for a word that a packet has come before it sends it again for the first time (Linux)."""
    answered_s: float = 0.5
    """A fetch is answered after so long at the latest (``fetch.max.wait.ms``)."""
    reconnected_s: DelayRange = (1.0, 10.0)
    """How long after a cut those get words through who closed their connections meanwhile: 3.7 to 9.4 s in 8 cases."""
    rediscovered_s: DelayRange = (0.0, 2.0)
    """The same for the coordinator, where the session is over by the member's own clock: it asks all the time."""
    beat_jitter_s: float = 0.03
    """By how much one heartbeat differs from the interval: members' beats drift apart with the root of their number."""
    assigned_s: DelayRange = (0.0, 0.25)
    """How much earlier than the members' word of their assignment their clocks were set, tailed."""
    notified_s: DelayRange = (-0.03, 0.03)
    """By how much a member hears earlier or later than the clock of its heartbeats says."""
    beat_late_s: DelayRange = (0.0, 0.08)
    """By how much heartbeats lie further apart than their interval says, busy."""
    commit_jitter_s: DelayRange = (0.0, 0.1)
    """By how much a commit is later than due."""
    overhead: DelayRange = (1.0, 1.15)
    """How many times its service time a record takes in the loop."""
    zombie_gets_single: float = 0.7
    """Odds that such a poll of the consumer protocol brings one partition's records only: 2 of 3."""
    zombie_polls: float = 0.85
    """Odds that a resumed member polls once more before it hears that it is out: 11 of 12."""
    fetched_records: tuple[float, float] = (500.0, 5_000.0)
    """How many records of one partition an answer holds at most: 1 MiB (``max.partition.fetch.bytes``)."""


DEFAULT = Calibration()
