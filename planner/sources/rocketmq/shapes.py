"""Parts of a parsed body as the types that they must have, or ``BodyError`` with the place where they have not."""

from collections.abc import Mapping

from planner.model.queues import MessageQueue
from planner.sources.rocketmq.errors import BodyError
from planner.sources.rocketmq.fastjson import Json, Key


def queue(key: Key, where: str) -> MessageQueue:
    """Return the queue that an object in a key's place names."""
    if not isinstance(key, tuple):
        raise BodyError(f"{where} has the key {key!r:.60}, expected an object with topic, brokerName and queueId")
    fields = dict(key)
    return MessageQueue(
        topic=text(fields.get("topic"), f"{where}: topic of a key"),
        broker=text(fields.get("brokerName"), f"{where}: brokerName of a key"),
        queue_id=integer(fields.get("queueId"), f"{where}: queueId of a key"),
    )


def mapping(value: Json, where: str) -> Mapping[Key, Json]:
    """Return an object."""
    if not isinstance(value, dict):
        raise _other(value, where, "an object")
    return value


def sequence(value: Json, where: str) -> "list[Json]":
    """Return a list."""
    if not isinstance(value, list):
        raise _other(value, where, "a list")
    return value


def mappings(value: Json, where: str) -> list[Mapping[Key, Json]]:
    """Return a list of objects."""
    return [mapping(entry, f"{where}[{index}]") for index, entry in enumerate(sequence(value, where))]


def text(value: Json, where: str) -> str:
    """Return text."""
    if not isinstance(value, str):
        raise _other(value, where, "text")
    return value


def texts(value: Json, where: str) -> tuple[str, ...]:
    """Return a list of text, sorted."""
    return tuple(sorted(text(entry, where) for entry in sequence(value, where)))


def flag(value: Json, where: str) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise _other(value, where, "true or false")
    return value


def integer(value: Json, where: str) -> int:
    """Return an integer; true and false are none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise _other(value, where, "an integer")
    return value


def number(value: Json, where: str) -> float:
    """Return an integer or a fraction."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _other(value, where, "a number")
    try:
        return float(value)
    except OverflowError:
        raise _other("an integer of more than 300 digits", where, "a number") from None


def _other(value: Json, where: str, expected: str) -> BodyError:
    shown = value if isinstance(value, None | bool | int | float | str) else type(value).__name__
    return BodyError(f"{where} is {str(shown)[:60]!r}, expected {expected}")
