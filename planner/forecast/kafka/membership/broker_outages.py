"""Brokers that die or come back: partitions and the coordinator change their leader, members stay who they are.

Nothing moves: a new coordinator reads the group's state from its log and starts every session anew
(``GroupMetadataManager#onLoaded``). What stops is what the broker led, until the controller has noticed and chosen.
"""

from dataclasses import dataclass

import numpy as np

from planner.forecast.common.delay_ranges import draw_evenly
from planner.forecast.kafka.membership.scenario import Booleans, Floats, Scenario
from planner.forecast.kafka.request.changes import BrokerDown, BrokerUp
from planner.forecast.kafka.timing import Calibration

UNKNOWN_BROKERS = (3, 9)
"""How many brokers there may be where the request does not name them: sampled."""

IMBALANCE_CHECK_S = 300.0
"""``leader.imbalance.check.interval.seconds``: a broker that is back leads again at the controller's next check."""


@dataclass(frozen=True, slots=True, eq=False)
class Outages:
    """By trial and partition: for how long nobody can read it, and until when."""

    stall_s: Floats
    until_s: Floats


def find_outages(scenario: Scenario, calibration: Calibration, random: np.random.Generator) -> Outages:
    """Return what a change of brokers stops; nothing for any other change."""
    change, shape = scenario.request.change, (scenario.request.trials, len(scenario.partitions))
    if not isinstance(change, BrokerDown | BrokerUp):
        return Outages(np.zeros(shape), np.zeros(shape))
    settings = scenario.request.settings
    elected = draw_evenly(random, calibration.election_s, (shape[0], 1))
    if isinstance(change, BrokerUp):
        begins = random.uniform(0, IMBALANCE_CHECK_S, (shape[0], 1))
        stall = np.where(_leads(scenario, change.broker, random)[0], elected, 0.0)
        return Outages(stall, np.where(stall > 0, begins + stall, 0.0))
    # The controller counts from the broker's last heartbeat.
    since = random.uniform(0, settings.seconds("broker.heartbeat.interval.ms"), (shape[0], 1))
    noticed = np.maximum(settings.seconds("broker.session.timeout.ms") - since, 0.0)
    leads, coordinates = _leads(scenario, change.broker, random)
    waits = leads if settings.is_on("enable.auto.commit") else leads | coordinates
    stall = np.where(waits, noticed + elected, 0.0)
    return Outages(stall, stall)


def _leads(scenario: Scenario, broker: str, random: np.random.Generator) -> tuple[Booleans, Booleans]:
    """Return by trial which partitions the broker leads, and whether it is the group's coordinator.

    A client cannot know where the group's offsets lie, so the coordinator is any of the brokers.
    """
    trials, names = scenario.request.trials, scenario.request.brokers
    if names:
        leads = np.broadcast_to(
            np.array([leader == broker for leader in scenario.leaders]), (trials, len(scenario.leaders))
        )
        return leads, random.random((trials, 1)) * len(names) < 1
    count = random.integers(UNKNOWN_BROKERS[0], UNKNOWN_BROKERS[1] + 1, (trials, 1))
    leads = random.random((trials, len(scenario.partitions))) * count < 1
    return leads, random.random((trials, 1)) * count < 1
