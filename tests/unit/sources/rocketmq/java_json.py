"""Writes JSON as fastjson does: objects as keys, bare integers as keys, ``NaN``."""

import json
import math
from collections.abc import Mapping

QueueKey = tuple[tuple[str, object], ...]


def queue_key(topic: str, broker: str, queue_id: int) -> QueueKey:
    """Return the key of one queue in a map by MessageQueue."""
    return (("brokerName", broker), ("queueId", queue_id), ("topic", topic))


def write(value: object) -> str:
    """Return ``value`` in fastjson's way; a tuple of pairs as key becomes an object."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_key(key)}:{write(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write, value)) + "]"
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return json.dumps(value, ensure_ascii=False)


def body(value: object) -> bytes:
    """Return ``value`` as the body of an answer."""
    return write(value).encode()


def _key(key: object) -> str:
    return write(dict(key)) if isinstance(key, tuple) else json.dumps(key, ensure_ascii=False)
