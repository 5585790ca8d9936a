"""What comes into each queue after a broker has died: its producers send to the others, at once or as they learn of it.

Clients that go round try the next queue of another broker as soon as a send fails (``TopicPublishInfo``,
``MQFaultStrategy.BrokerFilter``). Keyed sends (``SelectMessageQueueByHash``) fail until their process renews its route,
every ``pollNameServerInterval``, and map all keys anew then.
"""

from dataclasses import dataclass
from math import gcd

import numpy as np

from planner.forecast.rocketmq.membership.scenario import Booleans, Floats, Indexes, Scenario
from planner.forecast.rocketmq.request.producers import ProducerKind, Producers

NOBODY = -1


@dataclass(frozen=True, slots=True, eq=False)
class Inflow:
    """Messages per second into each queue, by trial and queue: ``first`` from the broker's death, ``after`` from
    ``shift_s`` on.

    ``shift_s`` is by trial and queue, too, as topics have producers of their own. ``consumed`` is what the owners
    before the change do of each queue from ``shift_s`` on.
    """

    first: Floats
    after: Floats
    shift_s: Floats
    consumed: Floats

    def arrived(self, at_s: Floats) -> Floats:
        """Return how many messages have come in since the broker's death, negative before it."""
        messages: Floats = self.first * at_s + (self.after - self.first) * np.maximum(at_s - self.shift_s, 0.0)
        return messages

    def rate_at(self, at_s: float | Floats) -> Floats:
        """Return what comes in a second at a time."""
        return np.where(self.shift_s <= at_s, self.after, self.first)


def find_inflow(
    scenario: Scenario, owners_before: Indexes, per_process: Floats, backlogged: Booleans, random: np.random.Generator
) -> Inflow | None:
    """Return the inflow where a broker's death changes it, ``None`` where it goes on as it is.

    ``owners_before`` are processes by queue, ``per_process`` what each can do in a second. Of a topic whose producers
    are unknown, half of the trials have producers that go round and half have keyed ones.
    """
    if scenario.down is None or all(
        scenario.request.producers.of(topic.name) is ProducerKind.FIXED for topic in scenario.topics
    ):
        return None
    shape = (scenario.request.trials, len(scenario.queues))
    first, after = (np.broadcast_to(scenario.rates, shape).copy() for _ in range(2))
    shift_s = np.zeros(shape)
    poll_s = scenario.request.settings.seconds("pollNameServerInterval")
    producers = scenario.request.producers
    for topic in scenario.topics:
        queues = topic.queues[0]
        kind = producers.of(topic.name)
        is_lost = np.array([scenario.queues[queue].broker == scenario.brokers[scenario.down] for queue in queues])
        if kind is ProducerKind.FIXED or not is_lost.any() or is_lost.all():
            first[:, queues[is_lost]] = after[:, queues[is_lost]] = 0.0
            continue
        is_keyed = np.full(shape[0], kind is ProducerKind.KEYED)
        if kind is None:
            is_keyed[::2] = True
        learns_s = random.uniform(0, poll_s, (shape[0], producers.processes)).mean(axis=1)
        rates = scenario.rates[queues]
        keyed = _keyed(rates, ~is_lost, shape[0], random)
        evenly = np.where(is_lost, 0.0, rates.sum() / (~is_lost).sum())
        until = np.where(is_keyed[:, None], np.where(is_lost, 0.0, rates), _until_known(producers, rates, is_lost))
        first[:, queues] = until
        after[:, queues] = np.where(is_keyed[:, None], keyed, evenly)
        shift_s[:, queues] = np.where(is_keyed | producers.favours_next, learns_s, 0.0)[:, None]
    return Inflow(first, after, shift_s, _consumed(scenario, after, owners_before, per_process, backlogged))


def _until_known(producers: Producers, rates: Floats, is_lost: Booleans) -> Floats:
    """Return the inflow of queues whose producers go round, until they renew their routes.

    A client of before 5.1.4 that avoids brokers gives all of the avoided one's share to the queue that follows it in
    the sorted list, as its index does not advance while it skips (``LatencyFaultToleranceImpl``).
    """
    total, left = rates.sum(), int((~is_lost).sum())
    if not producers.favours_next:
        return np.where(is_lost, 0.0, total / left)
    share: Floats = np.where(is_lost, 0.0, total / len(rates))
    follows = (int(np.flatnonzero(is_lost)[-1]) + 1) % len(rates)
    share[follows] += total * is_lost.sum() / len(rates)
    return share


def _keyed(rates: Floats, is_left: Booleans, trials: int, random: np.random.Generator) -> Floats:
    """Return by trial and queue what keys bring to the queues that are left: as unevenly as they spread over all.

    ``SelectMessageQueueByHash`` takes the hash modulo the count of queues, in the order of the sorted list. So keys of
    one remainder by the greatest common divisor of both counts stay together, which is exact where the new count
    divides the old one; how they fall on the queues of that remainder is drawn from the present rates.
    """
    inflow, left = np.zeros((trials, len(rates))), np.flatnonzero(is_left)
    divisor = gcd(len(rates), len(left))
    for remainder in range(divisor):
        queues = left[remainder::divisor]
        drawn = rates[random.integers(0, len(rates), (trials, len(queues)))]
        sums = drawn.sum(axis=1, keepdims=True)
        shares = np.where(sums > 0, drawn / np.where(sums > 0, sums, 1.0), 1 / len(queues))
        inflow[:, queues] = rates[remainder::divisor].sum() * shares
    return inflow


def _consumed(scenario: Scenario, after: Floats, owners: Indexes, per_process: Floats, backlogged: Booleans) -> Floats:
    """Return by trial and queue what the owners before the change do of it once the inflow has shifted.

    Nothing comes from the dead broker, so that its queues take no thread any more.
    """
    assert scenario.down is not None
    is_read = np.array([queue.broker != scenario.brokers[scenario.down] for queue in scenario.queues])
    arriving = np.stack([after[:, owners == process].sum(axis=1) for process in range(len(per_process))], axis=1)
    is_hungry = backlogged & is_read
    mouths = np.array([max(int((is_hungry & (owners == process)).sum()), 1) for process in range(len(per_process))])
    scale = np.minimum(per_process / np.maximum(arriving, 1e-12), 1.0)
    spare = np.maximum(per_process - arriving, 0.0) / mouths
    of_queue = np.maximum(owners, 0)
    share = after * scale[:, of_queue] + np.where(is_hungry, spare[:, of_queue], 0.0)
    if scenario.request.orderly:
        batch = scenario.request.settings.value("consumeMessageBatchMaxSize")
        share = np.minimum(share, batch / max(scenario.request.service_time_s, 1e-9))
    return np.where(owners == NOBODY, after, np.where(is_read, share, 0.0))
