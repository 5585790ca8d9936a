"""Checks of fields that users write, each refusal one sentence: field, value found, expectation."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from planner.errors import BadInputError
from planner.model.queues import MessageQueue

LARGEST_QUEUE_ID = 2**31 - 1
_SHOWN = 60


def refusal(field: str, value: object, expected: str) -> BadInputError:
    """Return the error that names the field, its value and what was expected."""
    return BadInputError(f"{field}: found {shown(value)}, expected {expected}")


def missing(field: str, expected: str) -> BadInputError:
    """Return the error for a field that is not there."""
    return BadInputError(f"{field}: missing, expected {expected}")


def shown(value: object) -> str:
    """Return the value as JSON where it has such a form, cut to a line's length."""
    text = json.dumps(value, default=repr, ensure_ascii=True)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def mapping(value: object, field: str, expected: str = "an object") -> Mapping[str, Any]:
    """Return the value, checked to be an object."""
    if not isinstance(value, Mapping):
        raise refusal(field, value, expected)
    return value


def sequence(value: object, field: str, expected: str = "a list") -> Sequence[Any]:
    """Return the value, checked to be a list."""
    if not isinstance(value, list | tuple):
        raise refusal(field, value, expected)
    return value


def text(value: object, field: str, expected: str = "a text that is not empty") -> str:
    """Return the value, checked to be a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise refusal(field, value, expected)
    return value


def texts(value: object, field: str, expected: str) -> tuple[str, ...]:
    """Return the values, checked to be texts; empty ones are allowed (a room may be named "")."""
    for index, item in enumerate(sequence(value, field, expected)):
        if not isinstance(item, str):
            raise refusal(f"{field}[{index}]", item, "a text")
    return tuple(sequence(value, field))


def whole_number(value: object, field: str, least: int, most: int) -> int:
    """Return the value, checked to be a whole number from ``least`` to ``most``."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise refusal(field, value, f"a whole number from {least} to {most}")
    return value


def message_queue(value: object, field: str) -> MessageQueue:
    """Return the queue of ``{"topic": "T", "broker": "broker-a", "queue_id": 0}``; other keys are left aside."""
    shape = 'an object such as {"topic": "T", "broker": "broker-a", "queue_id": 0}'
    document = mapping(value, field, shape)
    for name in ("topic", "broker", "queue_id"):
        if name not in document:
            raise missing(f"{field}.{name}", shape)
    return MessageQueue(
        text(document["topic"], f"{field}.topic"),
        text(document["broker"], f"{field}.broker"),
        whole_number(document["queue_id"], f"{field}.queue_id", 0, LARGEST_QUEUE_ID),
    )


def message_queues(value: object, field: str) -> tuple[MessageQueue, ...]:
    """Return the queues of a list of such objects."""
    queues = []
    for index, item in enumerate(sequence(value, field, "a list of queues")):
        queue = _queue_at_a_glance(item)
        queues.append(message_queue(item, f"{field}[{index}]") if queue is None else queue)
    return tuple(queues)


def _queue_at_a_glance(item: Any) -> MessageQueue | None:
    """Return the queue of a faultless object, ``None`` for anything else: a million of them take a second."""
    try:
        topic, broker, queue_id = item["topic"], item["broker"], item["queue_id"]
    except (TypeError, KeyError, IndexError):
        return None
    names_fit = type(topic) is str and type(broker) is str and topic and broker
    if names_fit and type(queue_id) is int and 0 <= queue_id <= LARGEST_QUEUE_ID:
        return MessageQueue(topic, broker, queue_id)
    return None


def distinct(queues: Sequence[MessageQueue], field: str) -> Sequence[MessageQueue]:
    """Return the queues, checked that none is there twice."""
    if len(set(queues)) == len(queues):
        return queues
    first: dict[MessageQueue, int] = {}
    for index, queue in enumerate(queues):
        if first.setdefault(queue, index) != index:
            raise BadInputError(
                f"{field}[{index}]: found {shown(str(queue))} again, which is {field}[{first[queue]}] already, "
                f"expected each queue once"
            )
    return queues


def only_known(document: Mapping[str, object], known: Sequence[str], field: str) -> None:
    """Refuse a name that is not among the known ones."""
    for name in document:
        if name not in known:
            expected = f"one of {', '.join(known)}" if known else "no options for this strategy"
            raise refusal(field, name, expected)
