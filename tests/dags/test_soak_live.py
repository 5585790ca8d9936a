"""The soak, shortened: what comes in is too much for two pods, and nobody's hand gives the group more."""

from pathlib import Path

import pytest

from tests.dags.scheduling import Airflow
from tests.soak.__main__ import pass_day
from tests.soak.day import Day
from tests.soak.outcome import GroupOutcome, failed, phase
from tests.soak.town import BEGIN, Town, group_of, open_town, scheduling

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.usefixtures("java"),
    pytest.mark.timeout(3_600),
]

APPLY = "consumer_planner_apply"
MINUTES = 3
"""The schedule: a run costs both processors most of a minute, and waits are what this is not about."""

LONG_S = 3_600.0
MOST_S = 1_800.0
"""However busy the machine is: some runs, and a plan that is carried out, take no longer."""
TOO_MUCH = 260.0
"""Messages per second for two pods of 100 each."""


def is_done(town: Town, airflow: Airflow) -> bool:
    """True once a plan was carried out and judged, and Airflow has begun to follow it."""
    phases = [phase(plan) for group in town.groups for plan in town.plans(group)]
    return "Succeeded" in phases and bool(airflow.runs(APPLY))


def test_a_group_is_given_what_it_needs_without_a_hand(tmp_path: Path) -> None:
    """Red where a run fails, a plan stays unapproved, unfollowed or unjudged, a message is lost, or pods are few."""
    orders = group_of(tmp_path, "orders", Day(LONG_S, TOO_MUCH, ()))
    with open_town(tmp_path, [orders]) as town, scheduling(town, tmp_path, MINUTES) as airflow:
        runs = pass_day(town, airflow, LONG_S, lambda gone_s: is_done(town, airflow) or gone_s > MOST_S)
        outcome = GroupOutcome(orders.name, town.plans(orders), orders.ready, town.served(orders))
    assert failed(runs) == []
    assert list(outcome.wrong_ends()) == []
    assert outcome.applied, [plan.get("status") for plan in outcome.plans]
    assert outcome.inside[1] > 0, "a plan without a verdict is a wrong end, and some figure was observed and judged"
    assert outcome.looks[-1][1] > BEGIN
    assert outcome.served.messages > 0
    assert runs[APPLY], "Airflow followed the plan, too"
