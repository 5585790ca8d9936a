"""What a change of subscription does: who owns what after each step, which topics are unread for how long."""

from typing import Any

import numpy as np

from planner.forecast.common.readings import ADDED, KEPT, NOBODY, REMOVED, Readings, describe_steps, describe_topics
from planner.forecast.kafka.membership.scenario import Scenario
from planner.forecast.kafka.request.changes import SubscriptionChange, TopicCreated
from planner.forecast.kafka.simulate import Simulation


def find_subscription(scenario: Scenario, simulation: Simulation) -> dict[str, Any]:
    """Return ``subscription`` of an answer, for changes of that kind: ``steps``, one a restart, and ``topics``."""
    change = scenario.request.change
    if not isinstance(change, SubscriptionChange | TopicCreated):
        return {}
    readings = _readings(scenario, simulation)
    queues = [list(partition) for partition in scenario.partitions]
    topics = describe_topics(readings, queues, scenario.rates, _kinds(scenario))
    if isinstance(change, TopicCreated):
        return {"subscription": {"steps": [], "topics": topics}}
    labels = [*simulation.names.labels, None]
    steps = describe_steps(readings, queues, labels, change.members, change.interval_s)
    return {"subscription": {"steps": steps, "topics": topics}}


def _kinds(scenario: Scenario) -> dict[str, str]:
    """Return what the change does to each topic that anybody subscribes to, before or after it."""
    change = scenario.request.change
    if isinstance(change, TopicCreated):
        return {change.topic: ADDED}
    before = frozenset[str]().union(*(scenario.topics_of(process) for process in scenario.initial))
    after = frozenset[str]().union(*(scenario.topics_of(process) for process in scenario.final))
    return {
        topic: ADDED if topic in after - before else REMOVED if topic in before - after else KEPT
        for topic in sorted(before | after)
    }


def _readings(scenario: Scenario, simulation: Simulation) -> Readings:
    tenures, deliveries = simulation.membership.tenures, simulation.deliveries
    first = np.where(deliveries.delivers, deliveries.first, np.inf)
    client = np.where(np.isposinf(tenures.assigned_at), NOBODY, scenario.member_of[tenures.process])
    return Readings(
        np.moveaxis(client, 0, 2),
        np.moveaxis(tenures.assigned_at, 0, 2),
        np.moveaxis(first, 0, 2),
        np.moveaxis(tenures.revoked_at, 0, 2),
    )
