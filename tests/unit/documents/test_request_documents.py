"""What is wrong with a request is said in the words of the field that it is in."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from planner.documents.allocation import KafkaDocument, RocketMQDocument, answer
from planner.errors import BadInputError

QUEUE = {"topic": "T", "broker": "b", "queue_id": 0}
ROCKETMQ = {"system": "rocketmq", "strategy": "AVG", "queues": [QUEUE], "clients": ["c"]}
MEMBER = {"id": "c", "topics": ["t"]}
KAFKA = {"system": "kafka", "strategy": "range", "partitions": {"t": 2}, "members": [MEMBER]}


@pytest.mark.parametrize("model", [RocketMQDocument, KafkaDocument], ids=["rocketmq", "kafka"])
def test_every_field_says_what_it_holds(model: Any) -> None:
    schema = model.model_json_schema()
    objects = [schema, *schema.get("$defs", {}).values()]
    assert sorted(_undescribed(objects)) == []


def _undescribed(objects: list[Mapping[str, Any]]) -> Iterator[str]:
    for each in objects:
        fields = each.get("properties", {})
        yield from (f"{each['title']}.{name}" for name, field in fields.items() if "description" not in field)


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (
            ROCKETMQ | {"queue": [], "clients": 3},
            'request: found "queue", expected one of system, strategy, group, queues',
        ),
        (ROCKETMQ | {"strategy": "", "clients": None}, 'strategy: found "", expected a strategy\'s name'),
        (
            ROCKETMQ | {"queues": [{**QUEUE, "queue_id": 1.0}]},
            "queues[0].queue_id: found 1.0, expected a whole number from 0",
        ),
        (
            ROCKETMQ | {"queues": [{**QUEUE, "rate": 3}, {"topic": "T"}]},
            "queues[1].broker: missing, expected a text that is",
        ),
        (
            KAFKA | {"members": [MEMBER | {"owned": [["t", 0], ["t", -1]]}]},
            'members[0].owned[1]: found ["t", -1], expected a',
        ),
        (KAFKA | {"members": [MEMBER | {"owned": [["t"]]}]}, 'members[0].owned[0]: found ["t"], expected a topic and'),
        (KAFKA | {"partitions": {"": 1}}, 'partitions: found "", expected topic names that are not empty'),
        (KAFKA | {"partitions": {"t.0": -1}}, "partitions['t.0']: found -1, expected a whole number from 0"),
        (
            KAFKA | {"options": {"partition_racks": {"t": [["a"], [7]]}}},
            "options.partition_racks['t'][1][0]: found 7, expected null or the name of a rack",
        ),
    ],
)
def test_a_refusal_names_field_value_and_expectation(request_: object, sentence: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        answer(request_)
    assert str(refusal.value).startswith(sentence)


def test_half_a_surrogate_pair_is_no_name() -> None:
    with pytest.raises(BadInputError) as refusal:
        answer(ROCKETMQ | {"clients": ["\ud800"]})
    assert str(refusal.value) == 'clients[0]: found "\\ud800", expected a client id that is not empty'
