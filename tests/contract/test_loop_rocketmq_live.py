"""Real RocketMQ consumers in pods, scaled, updated and turned back by ``planner``; every delivery is looked at."""

from collections.abc import Callable, Iterator

import pytest

from tests.clusters.kubernetes import ControlPlane
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.loop_checks import check_duplicates_forecast, check_grown, check_shrunk, check_turned_back, check_updated
from tests.loops import ROCKETMQ_QUEUES, Loop, exactly, rocketmq_loop

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

Clusters = Callable[[str], RocketMQCluster]
GROUP = "loop"
RATE = 4.0
"""Messages per second to each queue."""


@pytest.fixture(scope="module")
def loop(
    control_plane_with_plans: ControlPlane, rocketmq_cluster: Clusters, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loop]:
    rocketmq, folder = rocketmq_cluster(NEW), tmp_path_factory.mktemp(GROUP)
    rocketmq.create_topic(GROUP, ROCKETMQ_QUEUES)
    with rocketmq_loop(control_plane_with_plans, rocketmq, folder, GROUP, 3, rate=RATE) as running:
        yield running


def test_three_become_five_become_two_and_the_chosen_ones_stop(loop: Loop) -> None:
    check_grown(loop, exactly(5), 5)
    check_shrunk(loop, exactly(2), 2)


def test_a_new_configuration_rolls_through_with_more_pods_first(loop: Loop) -> None:
    check_updated(loop, exactly(2))
    check_duplicates_forecast(loop)


def test_an_abort_amid_more_consumers_brings_count_and_owners_back(loop: Loop) -> None:
    check_turned_back(loop, exactly(5))
