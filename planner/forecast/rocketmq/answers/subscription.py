"""What a change of subscription does while old and new clients are mixed: owners, unread queues, filtered messages."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from planner.forecast.common.readings import (
    ADDED,
    FILTERED,
    KEPT,
    NOBODY,
    REMOVED,
    Readings,
    describe_steps,
    describe_topics,
)
from planner.forecast.rocketmq.membership.processes import AFTER
from planner.forecast.rocketmq.membership.scenario import Floats, Scenario
from planner.forecast.rocketmq.random_streams import RandomStreams, Stage
from planner.forecast.rocketmq.request.changes import SubscriptionChange, Tags
from planner.forecast.rocketmq.simulate import Simulation
from planner.forecast.trials import Document, interval

ALL_TAGS = "*"


def find_subscription(scenario: Scenario, simulation: Simulation) -> dict[str, Any]:
    """Return ``subscription`` of an answer, for changes of that kind: ``steps``, ``topics``, ``filters``, ``missing``.

    ``filters``: topics whose tags differ between old and new clients; brokers keep one filter of them, and which one is
    not known, so that a step has the most that may be filtered away. ``missing``: how long brokers know no subscription
    to a topic that only some clients have.
    """
    change = scenario.request.change
    if not isinstance(change, SubscriptionChange):
        return {}
    readings = _readings(scenario, simulation)
    queues = [[queue.topic, queue.broker, queue.queue_id] for queue in scenario.queues]
    labels = [*simulation.names.labels, None]
    return {
        "subscription": {
            "steps": describe_steps(readings, queues, labels, change.clients, change.interval_s),
            "topics": describe_topics(readings, queues, scenario.rates, topic_kinds(change)),
            "filters": list(_filters(scenario, simulation, change)),
            "missing": list(_missing(scenario, change)),
        }
    }


def topic_kinds(change: SubscriptionChange) -> dict[str, str]:
    """Return what the change does to each topic that is subscribed to before or after it."""
    return {topic: _kind(topic, change.before, change.to) for topic in sorted({*change.before, *change.to})}


def _kind(topic: str, before: Mapping[str, Tags], after: Mapping[str, Tags]) -> str:
    if topic not in before:
        return ADDED
    if topic not in after:
        return REMOVED
    return KEPT if before[topic] == after[topic] else FILTERED


def tags_at_risk(before: Tags, after: Tags) -> tuple[str, ...]:
    """Return the tags of which messages may be filtered away while both are mixed, ``*`` for all but those in both.

    Those that only one of the two names: an empty set names all.
    """
    if before and after:
        return tuple(sorted(before ^ after))
    return (ALL_TAGS,)


def mixed_s(scenario: Scenario, simulation: Simulation) -> tuple[Floats, Floats]:
    """Return by trial since when brokers know two subscriptions, and until when (inf: for good).

    The last client that is replaced ends it with its first heartbeat, whose subscription is the newest. A group of one
    client, or one whose clients are never two of a kind at a time, has no such time: it ends as it begins.
    """
    heartbeat = simulation.membership.times.heartbeat
    new = [number for number, process in enumerate(scenario.processes) if process.subscription == AFTER]
    stays = any(scenario.processes[number].subscription != AFTER for number in scenario.final)
    begins = heartbeat[:, new].min(axis=1)
    ends = np.full(len(begins), np.inf) if stays else heartbeat[:, new].max(axis=1)
    return begins, ends


def _filters(scenario: Scenario, simulation: Simulation, change: SubscriptionChange) -> Iterator[Document]:
    begins, ends = mixed_s(scenario, simulation)
    for topic, kind in topic_kinds(change).items():
        if kind != FILTERED:
            continue
        rate = float(scenario.rates[[queue.topic == topic for queue in scenario.queues]].sum())
        is_over = bool(np.isfinite(ends).all())
        most = np.round(rate * np.where(np.isfinite(ends), ends - begins, 0.0))
        yield {
            "topic": topic,
            "before": sorted(change.before[topic]) or [ALL_TAGS],
            "after": sorted(change.to[topic]) or [ALL_TAGS],
            "tags_at_risk": list(tags_at_risk(change.before[topic], change.to[topic])),
            "mixed_from_s": interval(begins),
            "mixed_until_s": interval(ends) if is_over else None,
            "filtered_messages": None,
            "filtered_at_most": interval(most) if is_over else None,
            "steps": [
                {"step": number + 1, "filtered_at_most": round(rate * change.interval_s)}
                for number in range(len(change.clients) - 1)
            ],
        }


def _missing(scenario: Scenario, change: SubscriptionChange) -> Iterator[Document]:
    """Yield for each step and topic that only old or only new clients subscribe to for how long brokers miss it.

    Each heartbeat replaces the group's topics (``ConsumerGroupInfo#updateSubscription``): one of a client without the
    topic removes it, and pulls are refused until one of a client with it comes. The clients' timers are apart by any
    part of their interval.
    """
    every_s = scenario.request.settings.seconds("heartbeatBrokerInterval")
    trials, clients = scenario.request.trials, len(scenario.request.clients)
    phases = RandomStreams(scenario.request.seed).of(Stage.HEARTBEATS).random((trials, clients)) * every_s
    order = [client.id or "" for client in scenario.request.clients]
    for number in range(len(change.clients)):
        is_new = np.isin(order, change.clients[: number + 1])
        if is_new.all():
            continue
        for topic, kind in topic_kinds(change).items():
            if kind in (ADDED, REMOVED):
                share, longest = _stretches(phases, is_new if kind == ADDED else ~is_new, every_s)
                yield {"step": number + 1, "topic": topic, "share": interval(share), "longest_s": interval(longest)}


def _stretches(phases: Floats, has_topic: Any, every_s: float) -> tuple[Floats, Floats]:
    """Return by trial which share of the time the last heartbeat was one without the topic, and the longest stretch."""
    order = np.argsort(phases, axis=1)
    at, has = np.take_along_axis(phases, order, axis=1), has_topic[order]
    next_at = np.concatenate([at[:, 1:], at[:, :1] + every_s], axis=1)
    lasts = np.where(has, 0.0, next_at - at)
    doubled, run, longest = np.concatenate([lasts, lasts], axis=1), np.zeros(len(at)), np.zeros(len(at))
    for column in range(doubled.shape[1]):
        run = np.where(doubled[:, column] > 0, run + doubled[:, column], 0.0)
        longest = np.maximum(longest, run)
    return lasts.sum(axis=1) / every_s, np.minimum(longest, every_s)


def _readings(scenario: Scenario, simulation: Simulation) -> Readings:
    """Return the stretches of all queues: those that no rebalance touches have one, from before to after."""
    tenures, shape = simulation.tenures, (scenario.request.trials, len(scenario.queues))
    count = max(tenures.process.shape[2], 1)
    client_of = np.array([*(process.client for process in scenario.processes), NOBODY], dtype=np.intp)
    client = np.full((*shape, count), NOBODY, dtype=np.intp)
    client[:, :, 0] = simulation.owners.before
    taken, first = np.full(client.shape, -np.inf), np.full(client.shape, -np.inf)
    until = np.full(client.shape, np.inf)
    if tenures.process.shape[2]:
        client[:, tenures.queues] = client_of[tenures.process]
        taken[:, tenures.queues], until[:, tenures.queues] = tenures.taken, tenures.dropped
        first[:, tenures.queues] = np.where(simulation.deliveries.delivers, simulation.starts.first, np.inf)
    return Readings(client, taken, first, until)
