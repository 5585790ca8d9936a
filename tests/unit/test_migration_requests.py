"""Strange requests for a migration: each is refused in one short sentence before anybody watches a group."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.errors import BadInputError
from planner.model.snapshot import GroupSnapshot
from planner.runs import migration
from tests.unit.cli.test_migrate_cli import classic, files, rocketmq

CHANGE = {"containers": [{"container": "app", "image": "shop:2"}]}
UPDATE = {"kind": "update", "change": CHANGE}
RENAME = {"kind": "rename", "to": "billing-2", "green": "app-2", "change": CHANGE}
STRATEGY = {"kind": "strategy", "to": "AVG_BY_CIRCLE", "green": "app-2", "change": CHANGE}
EXPAND = {"kind": "expand", "topic": "orders", "queues": 12}


def changed(**container: Any) -> dict[str, Any]:
    return {"kind": "update", "change": {"containers": [{"container": "app", **container}]}}


def nested(levels: int) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for _ in range(levels):
        document = {"a": document}
    return document


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        pytest.param(["update"], "kind is missing", id="no object"),
        ({"kind": ["update"]}, "kind is"),
        ({**UPDATE, "namespace": "kube-system"}, "migration.namespace is not known"),
        pytest.param({**UPDATE, "x" * 5_000: 1}, "is not known", id="a huge field"),
        pytest.param({**UPDATE, **{f"field{i}": 1 for i in range(1_000)}}, "is not known", id="1 000 fields"),
        pytest.param({"kind": "update", "change": nested(900)}, "too many levels", id="900 levels"),
        pytest.param({"kind": "update", "change": nested(100_000)}, "too many levels", id="100 000 levels"),
        pytest.param(changed(image="i" * 1_000_000), "1000074 bytes", id="a huge image"),
        (changed(image="<script>alert(1)</script>"), "containers.0.image: found '<script>"),
        (changed(image=""), "expected an image"),
        (changed(env=[{"name": "A B=C", "value": "x"}]), "expected a variable's name"),
        pytest.param(
            changed(env=[{"name": f"V{i % 200}", "value": ""} for i in range(400)]), "each variable", id="200 variables"
        ),
        ({"kind": "update", "change": {"nodeLabels": [{"name": "zone", "value": "a b"}]}}, "expected a label's value"),
        ({**UPDATE, "surge": 10**30}, "expected 1 to 10000"),
        ({**RENAME, "green": "kube-system/coredns"}, "expected a name of Kubernetes"),
        ({**RENAME, "green": "../../etc/passwd"}, "expected a name of Kubernetes"),
        ({**RENAME, "green": "app"}, "another Deployment than"),
        ({**RENAME, "to": "billing"}, "another name than"),
        ({**RENAME, "to": "../.."}, "expected a RocketMQ group"),
        ({**RENAME, "to": "a\u202e\x1b[31mb"}, "expected a name of"),
        ({**STRATEGY, "to": "NO_SUCH"}, "choose one of AVG"),
        ({**STRATEGY, "to": "/tmp/evil.py:Evil"}, "brings no Python file"),
        ({**STRATEGY, "newGroup": "<b>"}, "newGroup: found '<b>'"),
        ({"kind": "cluster", "to": "DefaultCluster", "green": "app-2", "change": CHANGE}, "another cluster than"),
        ({"kind": "assignor", "to": "sticky", "variable": {"container": "app", "name": "A"}}, "is not for rocketmq"),
        ({"kind": "reset", "to": "yesterday"}, "expected a time with its zone"),
        ({"kind": "reset", "to": "0001-01-01T00:00:00+14:00"}, "a time of the years 2000"),
        ({"kind": "reset", "to": "2999-01-01T00:00:00Z"}, "a time that has come"),
        ({"kind": "reset", "to": 2**63, "queue": "orders/broker-a/0"}, "expected 0 to 9223372036854775807"),
        ({"kind": "reset", "to": "latest", "queue": "../../etc/passwd"}, "a queue such as orders/broker-a/3"),
        ({"kind": "reset", "to": "latest", "topic": "<b>"}, "expected a RocketMQ topic"),
        ({**EXPAND, "queues": -1}, "expected 1 to 65536"),
        ({**EXPAND, "queues": 10**12}, "expected 1 to 65536"),
        ({**EXPAND, "consumers": -3}, "expected 1 to 65536"),
        ({"kind": "subscription", "to": {"../x": "*"}, "change": CHANGE}, "expected a RocketMQ topic"),
    ],
)
def test_a_strange_request_is_one_short_sentence(asked: Any, sentence: str, tmp_path: Path) -> None:
    assert sentence in refusal_of(asked, rocketmq, tmp_path)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (STRATEGY, "ask for assignor or consumerProtocol"),
        ({"kind": "shrink", "topic": "t", "queues": 2}, "is not for kafka"),
        ({"kind": "assignor", "to": "nope", "variable": {"container": "app", "name": "A"}}, "expected one of range"),
        ({"kind": "consumerProtocol", "to": "nope", "change": CHANGE}, "expected one of uniform, range-server"),
        ({**EXPAND, "topic": ".."}, "expected a Kafka topic"),
        ({"kind": "reset", "to": "latest", "queue": "t/broker-a/0"}, "a queue such as orders/3"),
    ],
)
def test_a_request_that_kafka_does_not_have_is_one_short_sentence(asked: Any, sentence: str, tmp_path: Path) -> None:
    assert sentence in refusal_of(asked, classic, tmp_path)


def refusal_of(asked: Any, taken: Callable[[], GroupSnapshot], folder: Path) -> str:
    _, policy = files(folder, taken())
    with pytest.raises(BadInputError) as refused:
        migration.check(policy, asked)
    text = str(refused.value)
    assert text.startswith("parameter migration: ")
    assert len(text) < 200, text
    return text


def test_a_long_expression_of_tags_is_taken(tmp_path: Path) -> None:
    _, policy = files(tmp_path, rocketmq())
    tags = " || ".join(f"tag-{number}" for number in range(100))
    asked = {"kind": "subscription", "to": {"orders": tags}, "green": "app-2", "change": CHANGE}
    assert migration.check(policy, asked) == "subscription"
