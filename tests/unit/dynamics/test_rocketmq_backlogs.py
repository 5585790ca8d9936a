"""POP: what members have popped of messages that wait, and drop; of one life of a group that takes over."""

from dataclasses import replace

import numpy as np
import pytest

from planner.documents.forecast.rocketmq import read_request
from planner.forecast.rocketmq.handover.first_pulls import Starts
from planner.forecast.rocketmq.handover.pop_backlogs import Popped, find_popped_at_end
from planner.forecast.rocketmq.handover.tenures import Tenures
from planner.forecast.rocketmq.membership.consume_rates import Rates
from planner.forecast.rocketmq.membership.scenario import Scenario, build_scenario
from planner.forecast.rocketmq.request.changes import BlueGreen
from planner.forecast.rocketmq.timing import POP_THRESHOLD
from tests.unit.dynamics.small_groups import rocketmq_request

SERVICE_S, THREADS, QUEUES = 0.4, 20, 4
OLD, NEW = 0, 1
Span = tuple[int, float, float]
"""Who pops, from when to when."""


def world_of(rate: float, lag: float = 0) -> Scenario:
    """One client of a group that stops, then one of another; two queues on each of two brokers."""
    change = {"kind": "blue_green", "to_group": "h", "clone_s": 1.0, "clients": [{"id": "10.0.1.1@d1"}]}
    request = rocketmq_request(
        change, queues=QUEUES, clients=1, rate=rate, lag=lag, options={"pop_share_queues": 1}, service_time_s=SERVICE_S
    )
    return build_scenario(read_request({**request, "trials": 1}))


def popped(scenario: Scenario, *spans: Span, whole: bool = True) -> Popped:
    """What was popped where all queues are held so, one hold after the other."""
    process, first, dropped = (np.tile(np.array(part), (1, QUEUES, 1)) for part in zip(*spans, strict=True))
    no = np.zeros(process.shape, dtype=bool)
    nothing = np.zeros((1, len(scenario.processes), 1), dtype=np.intp)
    tenures = Tenures(np.arange(QUEUES), process.astype(np.intp), first - 0.5, dropped, no, no, no | whole, nothing)
    per_process = np.full(len(scenario.processes), THREADS / SERVICE_S)
    change = scenario.request.change
    assert isinstance(change, BlueGreen)
    rates = Rates(SERVICE_S, scenario.rates, scenario.rates, per_process, np.zeros(QUEUES, dtype=np.intp))
    return find_popped_at_end(scenario, change, tenures, Starts(first, first, {}), rates)


def test_threads_begin_together_and_the_rest_is_never_begun() -> None:
    """Seen on a real group: popped after 3.20 s, dropped after 3.90 s, 40 calls began, 20 ran, 82 came late."""
    found = popped(world_of(rate=7.81), (NEW, 3.2, 3.9))
    assert found.running.sum() == pytest.approx(THREADS)
    assert found.unbegun.sum() == pytest.approx(82, abs=1)
    assert not popped(world_of(rate=7.81), (OLD, 3.2, 3.9)).running.any()


@pytest.mark.parametrize(("whole", "most"), [(True, 2 * POP_THRESHOLD), (False, QUEUES * POP_THRESHOLD)])
def test_a_member_caches_so_much_of_a_whole_broker_or_of_each_queue(whole: bool, most: int) -> None:
    found = popped(world_of(rate=8.0, lag=5_000), (NEW, 3.2, 3.9), whole=whole)
    assert found.unbegun.sum() == pytest.approx(most)
    assert found.behind_s == pytest.approx(most * SERVICE_S / THREADS)
    assert not found.asks.any()


def test_who_keeps_pace_drops_what_runs_and_leaves_a_request_with_each_broker_or_queue() -> None:
    found = popped(world_of(rate=8.0), (NEW, 3.2, 60.0))
    assert (found.unbegun.sum(), found.asks.sum()) == (0, 2)
    assert found.running.sum() == pytest.approx(8.0 * QUEUES * SERVICE_S, rel=0.1)
    assert popped(world_of(rate=8.0), (NEW, 3.2, 60.0), whole=False).asks.sum() == QUEUES


def test_what_was_dropped_is_not_there_for_the_next_hold() -> None:
    scenario = world_of(rate=8.0)
    found = popped(scenario, (NEW, 3.2, 3.9), (NEW, 4.4, 4.5))
    assert found.unbegun[:, :, 0].sum() > 60
    # 0.6 s of arrivals, and all threads are free
    assert found.running[:, :, 1].sum() == pytest.approx(8.0 * QUEUES * 0.6, rel=0.1)
    assert found.unbegun[:, :, 1].sum() == 0


def test_who_asks_first_leaves_nothing_to_the_next_one() -> None:
    both = replace(world_of(rate=8.0), processes=(*world_of(rate=8.0).processes, world_of(rate=8.0).processes[NEW]))
    found = popped(both, (NEW, 3.2, 3.9), (NEW + 1, 3.3, 3.9))
    assert found.unbegun[:, :, 0].sum() > 50
    assert found.unbegun[:, :, 1].sum() == 0
    assert 0 < found.running[:, :, 1].sum() < 8.0 * QUEUES * 0.7
