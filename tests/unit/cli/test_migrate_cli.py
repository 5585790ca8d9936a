"""``planner migrate``: a request becomes a plan like any other; what cannot be planned is one sentence."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner import pipeline
from planner.documents.data import SNAPSHOT
from planner.documents.migration import parse_request, request_in
from planner.documents.plan import PLAN, read_document, read_plan_or_decision
from planner.documents.policy import read_policy
from planner.model.pods import Container
from planner.model.snapshot import GroupSnapshot
from planner.rollout.plan import RolloutPlan
from planner.rollout.steps import AwaitSettled, UpdateTemplate
from planner.storage.files import write_atomically
from tests.unit.cli.test_cli import Found, planner, refused
from tests.unit.rollout.test_migrations import found, kafka

POLICY = """
apiVersion: consumerplanner.dev/v1alpha1
kind: ConsumerScalingPolicy
metadata: {{name: shop, namespace: {namespace}}}
spec:
  source: {{system: {system}, cluster: DefaultCluster, group: {group}, {servers}: ["127.0.0.1:9876"]}}
  scaleTargetRef: {{name: app}}
  maxReplicas: 16
  freshness: {{maxAgeSeconds: {max_age_s}}}
"""
ROCKETMQ = found().snapshot
IMAGE = ("--image", "shop:2")
AT = ("--at", "snapshot")


def files(folder: Path, taken: GroupSnapshot, max_age_s: int = 120) -> tuple[Path, Path]:
    """Write a snapshot and the policy of its group, which allows data to be ``max_age_s`` old; return where."""
    servers = "nameServers" if taken.system == "rocketmq" else "bootstrapServers"
    namespace = taken.deployment.namespace if taken.deployment else "default"
    policy = POLICY.format(
        system=taken.system, group=taken.group, servers=servers, namespace=namespace, max_age_s=max_age_s
    )
    return (
        write_atomically(folder / "snapshot.json", SNAPSHOT.dump(taken)),
        write_atomically(folder / "policy.yaml", policy),
    )


def migrate(folder: Path, taken: GroupSnapshot, kind: str, *words: str, output: str | None = None) -> Found:
    snapshot, policy = files(folder, taken)
    return planner("migrate", kind, snapshot, "--policy", policy, "-o", output or folder / "plan.yaml", *words)


def revised(taken: GroupSnapshot, revision: int | None = 3, **changes: Any) -> GroupSnapshot:
    assert taken.deployment
    known: dict[str, Any] = {"revision": revision, "containers": (Container("app", "shop:1"),), **changes}
    return replace(taken, deployment=replace(taken.deployment, **known))


def rocketmq() -> GroupSnapshot:
    return revised(ROCKETMQ)


def classic() -> GroupSnapshot:
    return revised(kafka().snapshot)


def read(folder: Path) -> RolloutPlan:
    made = read_plan_or_decision(folder / "plan.yaml")
    assert isinstance(made, RolloutPlan)
    return made


@pytest.mark.parametrize(
    ("of", "kind", "words"),
    [
        (rocketmq, "update", [*IMAGE, "--env", "LEVEL=info"]),
        (rocketmq, "strategy", ["--to", "AVG_BY_CIRCLE", "--green", "g", "--env", "STRATEGY=AVG_BY_CIRCLE"]),
        (rocketmq, "rename", ["--to", "billing-2", "--green", "g", "--env", "GROUP=billing-2"]),
        (rocketmq, "relocate", ["--green", "g", "--node-label", "zone=b"]),
        (rocketmq, "cluster", ["--to", "cluster-b", "--green", "g", "--env", "NAME_SERVER=b:9876"]),
        (rocketmq, "reset", ["--to", "2026-11-21T10:00:00Z"]),
        (rocketmq, "reset", ["--to", "0", "--queue", "orders/broker-a/0"]),
        (classic, "reset", ["--to", "latest", "--topic", "t"]),
        (rocketmq, "expand", ["--topic", "orders", "--queues", "12", "--consumers", "6"]),
        (classic, "assignor", ["--to", "cooperative-sticky", "--variable", "ASSIGNORS"]),
        (classic, "assignor", ["--to", "cooperative-sticky", "--green", "g", "--env", "ASSIGNORS=cooperative-sticky"]),
        (classic, "consumer-protocol", ["--env", "GROUP_PROTOCOL=consumer"]),
    ],
)
def test_each_migration_becomes_a_plan_that_is_explained_and_approved(
    of: Callable[[], GroupSnapshot], kind: str, words: list[str], tmp_path: Path
) -> None:
    done = migrate(tmp_path, of(), kind, *words, *AT)
    assert done.returncode == 0, done.stderr
    made = read(tmp_path)
    assert (made.migration or "").lower() == kind.replace("-", "")
    request = request_in(read_document(tmp_path / "plan.yaml"), "plan.yaml")
    assert request is not None
    policy, at = read_policy(tmp_path / "policy.yaml"), made.made_at
    assert pipeline.migrate(of(), parse_request(request, "request"), policy, at) == made, "it can be asked again"
    assert "Step 1: " in done.stdout
    told = " ".join(done.stdout.split())
    assert all(" ".join(way.split()) in told for way in made.ways)
    assert f"planner approve {tmp_path / 'plan.yaml'}" in done.stdout
    assert all(f"--confirm '{phrase}'" in done.stdout for phrase in made.confirmations)
    document = yaml.safe_load((tmp_path / "plan.yaml").read_text())
    digits = document["metadata"]["annotations"]["consumerplanner.dev/digest"].removeprefix("sha256:")[:6]
    assert document["metadata"]["name"] == f"shop-{kind.replace('-', '')}-20261121-103000-{digits}"
    assert "consumerplanner.dev/approve" not in document["metadata"]["annotations"]
    explained = planner("explain", tmp_path / "plan.yaml")
    assert explained.stdout.splitlines()[:-1] == done.stdout.splitlines()[:-2]
    assert explained.stdout.splitlines()[-1] == done.stdout.splitlines()[-1], "the next command is the same"


def test_the_way_back_is_the_revision_that_the_snapshot_saw(tmp_path: Path) -> None:
    assert migrate(tmp_path, rocketmq(), "update", *IMAGE, *AT).returncode == 0
    (step,) = (step for step in read(tmp_path).steps if isinstance(step, UpdateTemplate))
    assert step.from_revision == 3
    assert step.change.containers[0].container == "app"


def test_a_file_says_what_options_cannot(tmp_path: Path) -> None:
    change = write_atomically(
        tmp_path / "change.yaml",
        "containers: [{container: app, arguments: [--fast], removedEnv: [SLOW]}]\n"
        "annotations: [{name: note, value: x}]\n",
    )
    assert migrate(tmp_path, rocketmq(), "update", "--change", str(change), *AT).returncode == 0
    (step,) = (step for step in read(tmp_path).steps if isinstance(step, UpdateTemplate))
    assert str(step.change) == "arguments --fast, no SLOW in container app; annotation note=x"


def test_json_and_yaml_on_standard_output_are_the_same_document(tmp_path: Path) -> None:
    as_json = migrate(tmp_path, rocketmq(), "update", *IMAGE, *AT, output="json")
    as_yaml = migrate(tmp_path, rocketmq(), "update", *IMAGE, *AT, output="-")
    assert json.loads(as_json.stdout) == yaml.safe_load(as_yaml.stdout)
    assert PLAN.parse(json.loads(as_json.stdout), "it").migration == "update"


@pytest.mark.parametrize(
    ("taken", "kind", "words", "code", "said"),
    [
        (rocketmq(), "update", [*IMAGE], 1, "no plan (OldData): the snapshot of group billing"),
        (revised(ROCKETMQ, ready=1), "update", [*IMAGE, *AT], 1, "no plan (NotAtRest): "),
        (
            revised(ROCKETMQ, None),
            "update",
            [*IMAGE, *AT],
            1,
            "no plan (NotAtRest): the snapshot does not",
        ),
        (replace(ROCKETMQ, deployment=None), "update", [*IMAGE, *AT], 2, "its Deployment was not read"),
        (rocketmq(), "update", [*AT], 2, "nothing would become different: give --image"),
        (rocketmq(), "update", [*IMAGE, "--env", "X", *AT], 2, "option --env: found 'X', expected NAME=VALUE"),
        (rocketmq(), "update", [*IMAGE, "--change", "x.yaml", *AT], 2, "says all that changes"),
        (rocketmq(), "update", ["--change", "x.yaml", *AT], 2, "x.yaml of --change cannot be read"),
        (rocketmq(), "update", [*IMAGE, "--container", "web", *AT], 2, "has no container 'web': it has app"),
        (rocketmq(), "update", [*IMAGE, "--surge", "0", *AT], 2, "surge to be 1 or more"),
        (rocketmq(), "strategy", ["--to", "AVG", "--green", "g", *IMAGE, *AT], 2, "has strategy AVG already"),
        (rocketmq(), "strategy", ["--to", "AVG2", "--green", "g", *IMAGE, *AT], 2, "AVG2"),
        (rocketmq(), "strategy", ["--to", "AVG2", "--options", "[1]", "--green", "g", *IMAGE, *AT], 2, "a JSON object"),
        (rocketmq(), "relocate", ["--green", "app", *IMAGE, *AT], 2, "the green Deployment cannot be app"),
        (rocketmq(), "assignor", ["--to", "range", "--variable", "A", *AT], 2, "expected a classic Kafka group"),
        (classic(), "assignor", ["--to", "sticky", *AT], 2, "in rolls, by its variable, or in a window"),
        (
            rocketmq(),
            "expand",
            ["--topic", "orders", "--queues", "12", "--consumers", "99", *AT],
            1,
            "MoreCons",
        ),
    ],
)
def test_what_cannot_be_planned_is_one_sentence(
    taken: GroupSnapshot, kind: str, words: list[str], code: int, said: str, tmp_path: Path
) -> None:
    done = migrate(tmp_path, taken, kind, *words)
    assert done.returncode == code, done.stderr
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert not (tmp_path / "plan.yaml").exists()


def test_a_deployment_of_several_containers_wants_one_named(tmp_path: Path) -> None:
    two = revised(ROCKETMQ, containers=(Container("app", "shop:1"), Container("side", "side:1")))
    assert "it has app, side: --container" in migrate(tmp_path, two, "update", *IMAGE, *AT).stderr
    assert migrate(tmp_path, two, "update", *IMAGE, *AT, "--container", "side").returncode == 0


def test_snapshot_and_policy_of_two_groups_are_refused(tmp_path: Path) -> None:
    other = replace(rocketmq(), group="other")
    files(tmp_path, rocketmq())
    snapshot = write_atomically(tmp_path / "other.json", SNAPSHOT.dump(other))
    done = planner("migrate", "update", snapshot, "--policy", tmp_path / "policy.yaml", "-o", "-", *IMAGE, *AT)
    refused(done, 2, "use two that belong together")


def test_parameters_and_rooms_go_into_the_steps_and_are_told(tmp_path: Path) -> None:
    rooms = {"machine_rooms": {"brokers": {"broker-a": "r1", "broker-b": "r2"}, "clients": {}, "inner": "AVG"}}
    words = ("--to", "MACHINE_ROOM_NEARBY", "--options", json.dumps(rooms), "--green", "app-green", *IMAGE, *AT)
    said = migrate(tmp_path, rocketmq(), "strategy", *words, "--room", "r2")
    assert said.returncode == 0, said.stderr
    step = [step for step in read(tmp_path).steps if isinstance(step, AwaitSettled)][-1]
    assert (step.strategy, step.options, step.new_room) == ("MACHINE_ROOM_NEARBY", rooms, "r2")
    assert "new ones in machine room r2, own what MACHINE_ROOM_NEARBY so set up gives them" in said.stdout
    assert "whether every green consumer runs in machine room r2: somebody has to make sure" in said.stdout
    refused(
        migrate(tmp_path, rocketmq(), "strategy", *words),
        2,
        "no machine room for strategy MACHINE_ROOM_NEARBY",
        "--room",
    )
    place = ("--green", "app-green", "--room", "r2", *IMAGE, *AT)
    refused(migrate(tmp_path, rocketmq(), "relocate", *place), 2, "it allocates by AVG, which knows no machine rooms")
