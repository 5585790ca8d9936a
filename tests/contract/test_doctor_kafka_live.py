"""``planner doctor --kafka`` against a real broker: sick groups and a healthy one, side by side in one JVM."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from planner.errors import UnknownNameError
from planner.sources.kafka import AnswerError, KafkaAdmin, observe_group
from tests.clusters.kafka import KafkaCluster
from tests.clusters.kafka_load import ClientProcess
from tests.unit.cli.test_cli import planner, refused

pytestmark = pytest.mark.cluster

JAVA = "org.apache.kafka.clients.consumer."
RANGE = f"{JAVA}RangeAssignor"
COOPERATIVE = f"{JAVA}CooperativeStickyAssignor"
TOPIC = "doctor-kafka"
PARTITIONS = 12
SETTLES_WITHIN_S = 300.0
EAGER = 10

EXPECTED = {
    "doctor-well": set(),
    "doctor-idle": {"idle-members", "kafka-no-static-ids"},
    "doctor-eager": {"kafka-eager", "kafka-no-static-ids"},
    "doctor-migrating": {"kafka-mixed-protocols"},
    "doctor-gone": {"no-members"},
}


def config(*assignors: str, **more: str) -> dict[str, str]:
    return {"partition.assignment.strategy": ",".join(assignors), "heartbeat.interval.ms": "500", **more}


def await_whole(admin: KafkaAdmin, group: str, protocols: list[str]) -> None:
    """Wait until the group is stable with a member for each of ``protocols``, and has nothing left to do.

    A cooperative group rebalances once more while partitions are without an owner; and what nobody has committed yet
    is a finding of its own.
    """
    deadline = time.monotonic() + SETTLES_WITHIN_S
    whole = ("Stable", sorted(protocols), PARTITIONS, {0})
    seen: tuple[Any, ...] | None = None
    while seen != whole:
        assert time.monotonic() < deadline, f"{group} is not whole after {SETTLES_WITHIN_S} s: {seen}"
        time.sleep(0.2)
        with suppress(UnknownNameError, AnswerError):  # nobody has joined yet
            sample = observe_group(admin, cluster=None, group=group, topics=None, at=datetime.now(UTC))
            found = sorted(str(member.protocol) for member in sample.members)
            seen = (sample.kafka.state, found, len(sample.owners), {one.lag for one in sample.offsets})


@pytest.fixture(scope="module")
def clients(kafka_cluster: KafkaCluster) -> Iterator[ClientProcess]:
    kafka_cluster.create_topic(TOPIC, PARTITIONS)
    kafka_cluster.produce(TOPIC, dict.fromkeys(range(PARTITIONS), 20))
    process = kafka_cluster.load().start()
    groups = {
        "doctor-well": [config(COOPERATIVE)] * 2,
        "doctor-idle": [config(COOPERATIVE)] * (PARTITIONS + 2),
        "doctor-eager": [config(RANGE)] * EAGER,
        "doctor-migrating": [{"group.protocol": "consumer"}, config(RANGE, COOPERATIVE)],
        "doctor-gone": [config(RANGE)],
    }
    with KafkaAdmin(kafka_cluster.bootstrap.split(",")) as admin:
        for group, configs in groups.items():
            for number, one in enumerate(configs):
                process.start_consumer(f"{group}-{number}", group=group, topics=[TOPIC], config=one)
                if "group.protocol" in one:
                    # A broker throws at a consumer of KIP-848 that joins a classic group in its first rebalance (4.3.1:
                    # fromClassicGroup reads a protocol not chosen yet), and such a consumer ends: one in ten.
                    await_whole(admin, group, ["consumer"])
        for group, configs in groups.items():
            await_whole(admin, group, ["consumer" if "group.protocol" in one else "classic" for one in configs])
    process.stop_consumer("doctor-gone-0")
    yield process
    process.stop()


@pytest.fixture(scope="module")
def seen(kafka_cluster: KafkaCluster, clients: ClientProcess) -> dict[str, dict[str, Any]]:
    assert clients.process.running
    wanted = [word for group in EXPECTED for word in ("--group", group)]
    found = planner("doctor", "--kafka", kafka_cluster.bootstrap, *wanted, "--watch", 10, "-o", "json")
    assert found.stderr == ""
    return {one["group"]: one for one in json.loads(found.stdout)["body"]["groups"]}


@pytest.mark.parametrize("group", EXPECTED)
def test_each_group_has_its_findings_and_no_other(seen: dict[str, dict[str, Any]], group: str) -> None:
    assert {finding["code"] for finding in seen[group]["findings"]} == EXPECTED[group]


def test_idle_members_are_counted(seen: dict[str, dict[str, Any]]) -> None:
    titles = [one["title"] for one in seen["doctor-idle"]["findings"]]
    assert "2 of 14 members own no partition" in titles


def test_what_a_broker_does_not_show_is_said(seen: dict[str, dict[str, Any]]) -> None:
    unchecked = {one["code"] for one in seen["doctor-well"]["unchecked"]}
    assert {"kafka-session-timeout", "kafka-mixed-assignors"} <= unchecked


def test_nobody_listening_is_out_of_reach() -> None:
    refused(planner("doctor", "--kafka", "127.0.0.1:1", "--all", "--watch", 0), 3, "127.0.0.1:1")
