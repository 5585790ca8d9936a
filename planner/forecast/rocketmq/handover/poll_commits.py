"""Applications that poll: what their stored offsets lack of what was delivered.

``DefaultLitePullConsumerImpl`` (4.9.8, 5.1.4, 5.3.3, 5.5.0). ``poll`` commits, into the client's memory, what earlier
polls returned, if ``autoCommitIntervalMillis`` are over. A queue that is dropped stores what memory has
(``RebalanceLitePullImpl#removeUnnecessaryMessageQueue``), and so does ``shutdown``, which commits nothing; else it is
stored every ``persistConsumerOffsetInterval``. Pulls carry no offset. So even who leaves in order repeats seconds.
"""

from dataclasses import dataclass

import numpy as np

from planner.forecast.rocketmq.handover.tenures import Tenures
from planner.forecast.rocketmq.membership.consume_rates import Rates, has_backlog, polls_apart_s
from planner.forecast.rocketmq.membership.process_times import ProcessTimes
from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, Scenario


@dataclass(frozen=True, slots=True, eq=False)
class Commits:
    """By row (queue of a trial) and tenure: when its process commits and stores, and what its poll loop has in hand.

    ``committed_s`` and ``stored_s`` are a moment at which the process does so, ``commit_every_s`` (0: before each poll)
    and ``store_every_s`` how far such moments lie apart. ``in_hand`` are messages of the batch that the application
    works on which it was given already, ``to_come`` those which it still goes through although its queue is gone.
    """

    committed_s: Floats
    commit_every_s: Floats
    stored_s: Floats
    store_every_s: float
    in_hand: Floats
    to_come: Floats

    def stored_ago_s(self, rows: Indexes, tenure: int, at: Floats) -> Floats:
        """Return how long before these times the process wrote its offsets to the broker, dropping nothing."""
        return _ago(at, self.stored_s[rows, tenure], self.store_every_s)

    def lacking(self, rows: Indexes, tenure: int, at: Floats, is_saved: Booleans, consumed: Floats) -> Floats:
        """Return how many messages the stored offset lacks of those handed out up to these times.

        ``is_saved``: stored right then, as the queue is dropped or the client shuts down in order.
        """
        stored_ago = np.where(is_saved, 0.0, self.stored_ago_s(rows, tenure, at))
        every_s = self.commit_every_s[rows, tenure]
        ago = _ago(at - stored_ago, self.committed_s[rows, tenure], np.maximum(every_s, 1e-9))
        by_time = consumed * (stored_ago + np.where(every_s > 0, ago, 0.0))
        lacking: Floats = by_time + np.where(every_s > 0, 0.0, self.in_hand[rows, tenure])
        return lacking


def find_commits(
    scenario: Scenario, times: ProcessTimes, tenures: Tenures, rates: Rates, random: np.random.Generator
) -> Commits:
    """Return the commits; the phases of a process's two clocks are drawn, as nobody knows its age."""
    request, settings, shape = scenario.request, scenario.request.settings, tenures.process.shape
    rows = (shape[0] * shape[1], shape[2])
    apart_s = polls_apart_s(scenario, rates)
    interval_s = np.ceil(settings.seconds("autoCommitIntervalMillis") / apart_s) * apart_s
    every_s = np.where(settings.is_on("autoCommit"), interval_s, 0.0)
    store_every_s = settings.seconds("persistConsumerOffsetInterval")
    phases = random.random((2, shape[0], len(scenario.processes)))
    commit, store = (
        times.of_holders(ages, tenures.process) for ages in (phases[0] * every_s, phases[1] * store_every_s)
    )
    batch = np.where(has_backlog(scenario, rates.service_s), settings.value("pullBatchSize"), 1)[tenures.queues]
    works = np.minimum(rates.consumed[tenures.queues] * rates.service_s, 1.0)
    is_busy = random.random(shape) < works[None, :, None]
    given = 1 + np.floor(random.random(shape) * batch[None, :, None])
    graceful = times.of_holders(times.graceful, tenures.process) & tenures.dies
    is_done = graceful & ("commit_on_shutdown" in request.commits)
    # A process that is killed goes through nothing more, one that shuts down through what its last poll returned.
    to_come = np.where(is_busy & ~(tenures.dies & ~graceful) & ~is_done, batch[None, :, None] - given, 0.0)
    return Commits(
        commit.reshape(rows),
        np.where(is_done, 0.0, every_s[np.maximum(tenures.process, 0)]).reshape(rows),
        store.reshape(rows),
        store_every_s,
        np.where(is_busy & ~is_done, given, 0.0).reshape(rows),
        to_come.reshape(rows),
    )


def _ago(at: Floats, once: Floats, every_s: Floats | float) -> Floats:
    """Return how long before these times something happened last that happens again and again."""
    ago_s: Floats = np.mod(np.where(np.isfinite(at), at, 0.0) - once, every_s)
    return ago_s
