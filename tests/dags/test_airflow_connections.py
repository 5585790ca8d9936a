"""The observing task takes a Kafka account out of an Airflow connection, and its secret is in nothing that is left.

Airflow is real and so is the guarded broker. ``MARKERS`` are looked for in every file of the run, Airflow's database
with its XComs and logs included, and in all that the process printed.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from planner.storage.layout import cluster_readings
from scripts.run_local import ROOT, Settings, environment
from tests.clusters.kafka import KafkaCluster
from tests.clusters.kafka_security import SECRETS
from tests.sample_builders import kafka_policy

pytestmark = [pytest.mark.airflow, pytest.mark.cluster]

WRONG = "wr0ng-m4rker-word"
MARKERS = (SECRETS["planner"], WRONG)

OBSERVE = """
import json, os, sys
from datetime import datetime
from scripts.run_dag import load_dags, prepare_database

prepare_database()
conf, at, others = json.loads(sys.argv[1]), datetime.fromisoformat(sys.argv[2]), "(?!observe).*"
run = load_dags()["consumer_planner"].test(logical_date=at, run_conf=conf, mark_success_pattern=others)
print("OBSERVE", {ti.task_id: str(ti.state) for ti in run.get_task_instances()}["observe"])
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """Group and topic ``shop``, which the account ``planner`` may describe."""
    with KafkaCluster.start(guarded=True, settings={"group.initial.rebalance.delay.ms": "0"}) as cluster:
        cluster.create_topic("shop", 2)
        cluster.produce("shop", {0: 5, 1: 5})
        cluster.commit("shop", {("shop", 0): 3})
        for kind in (ResourceType.TOPIC, ResourceType.GROUP):
            cluster.allow("planner", kind, "shop", AclOperation.DESCRIBE)
        yield cluster


def connection(password: str) -> str:
    """Return a connection of Airflow to the guarded broker, with half of what it takes in its extra."""
    extra = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
    return json.dumps({"conn_type": "kafka", "login": "planner", "password": password, "extra": extra})


def test_the_secret_of_a_connection_opens_the_broker_and_is_left_nowhere(cluster: KafkaCluster, tmp_path: Path) -> None:
    """Red when the connection is not used, or when its secret gets into a log, an XCom, a sample or a sentence."""
    assert cluster.guard is not None
    settings = Settings(tmp_path / "policies", tmp_path, tmp_path / "work")
    settings.airflow_home.mkdir(parents=True)
    settings.policies.mkdir()
    for name in ("right", "wrong"):
        policy = kafka_policy(cluster.guard.accounts, "shop").replace("name: shop}", f"name: {name}}}")
        # Two clusters by name: the same group of one cluster would be one policy too many.
        policy = policy.replace("cluster: test", f"cluster: {name}").replace("shop-consumer", f"{name}-consumer")
        text = policy.replace("group: shop}", f"group: shop, propertiesFile: 'airflow://kafka_{name}'}}")
        (settings.policies / f"{name}.yaml").write_text(text)
    conf = {"policies": str(settings.policies), "data": str(settings.data), "source": "live", "watch_seconds": 6}
    env = os.environ | environment(settings)
    env |= {"AIRFLOW_CONN_KAFKA_RIGHT": connection(MARKERS[0]), "AIRFLOW_CONN_KAFKA_WRONG": connection(WRONG)}
    command = [sys.executable, "-c", OBSERVE, json.dumps(conf), datetime.now(UTC).isoformat()]
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    output = ended.stdout + ended.stderr

    assert ended.returncode == 0, output[-4000:]
    assert "OBSERVE success" in output, output[-4000:]
    assert len(list(cluster_readings(settings.data, "kafka", "right").iterdir())) == 2
    (problems,) = (settings.data / "runs").glob("*/problems.json")
    assert list(json.loads(problems.read_text())) == ["wrong"]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert settings.airflow_home / "airflow.db" in files
    holders = [path for path in files if any(marker.encode() in path.read_bytes() for marker in MARKERS)]
    assert holders == []
    assert not any(marker in output for marker in MARKERS)
