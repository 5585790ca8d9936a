"""The observe stage of the scheduled run against real brokers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from planner.runs.landed import read_sample
from planner.runs.observe import observe_live
from planner.sources.live import SAMPLE_EVERY_S
from planner.storage.landing import reading_files, samples_of_reading
from tests.clusters.rocketmq import NEW, READY_S, RocketMQCluster
from tests.sample_builders import POLICY

pytestmark = pytest.mark.cluster


def test_a_live_watch_lands_what_it_saw_and_leaves_unknown_groups_to_the_snapshot_stage(
    rocketmq_cluster: Callable[[str], RocketMQCluster], tmp_path: Path
) -> None:
    cluster = rocketmq_cluster(NEW)
    cluster.create_topic("stages-live", 2)
    consumer = cluster.load(NEW).start_consumer(group="stages-live", topics=["stages-live"], instance="c1")
    everywhere = {broker.name: ("127.0.0.1@c1",) for broker in cluster.brokers}
    consumer.process.wait_until("its place", lambda: cluster.members("stages-live") == everywhere, READY_S)
    policies = tmp_path / "policies"
    policies.mkdir()
    at_home = POLICY.replace("127.0.0.1:9876", cluster.name_server)
    (policies / "known.yaml").write_text(at_home.replace("group: shop", "group: stages-live"), encoding="utf-8")
    (policies / "unknown.yaml").write_text(at_home.replace("name: shop", "name: unknown"), encoding="utf-8")
    run = observe_live(policies, tmp_path / "data", 6.0)
    consumer.stop()
    readings = list(reading_files(tmp_path / "data"))
    samples = [read_sample(sample) for path in readings for sample in samples_of_reading(path)[0]]
    assert [sample.group for sample in samples] == ["stages-live", "stages-live"]
    assert run.since <= samples[0].at < samples[1].at <= run.until
    # A busy machine may look late, but never early.
    assert SAMPLE_EVERY_S <= run.sample_every_s <= (samples[1].at - samples[0].at).total_seconds() + 0.1
    assert [member.client_id for member in samples[1].members] == ["127.0.0.1@c1"]
