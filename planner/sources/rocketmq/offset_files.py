"""Offsets from files, for a sample without a running cluster.

A broker keeps its groups' commits in ``store/config/consumerOffset.json`` (with the last but one as ``.bak``), a
broadcasting member its own in ``~/.rocketmq_offsets/<client id>/<group>/offsets.json``. Brokers that keep offsets in
RocksDB write neither.
"""

from pathlib import Path
from typing import Final, TypeVar

from planner.errors import DocumentError, StorageError
from planner.model.queues import MessageQueue
from planner.sources.rocketmq import broker_answers, fastjson, shapes
from planner.sources.rocketmq.broker_answers import CommittedOffsets
from planner.sources.rocketmq.errors import BodyError, JsonError
from planner.sources.rocketmq.fastjson import Key

MAX_FILE: Final = 256 * 1024 * 1024
"""Longest file we read, in bytes: some three million commits."""

_T = TypeVar("_T")


def read_consumer_offsets(path: Path) -> tuple[CommittedOffsets, ...]:
    """Return the commits in a broker's ``consumerOffset.json``, of 4.9 or 5.x, sorted by group and topic.

    The file is up to 5 s behind the broker. Raises ``StorageError`` for a file that cannot be read,
    ``DocumentError`` for one that is something else.
    """
    body = _content(path)
    try:
        return broker_answers.all_offsets(body)
    except (BodyError, JsonError) as error:
        raise _unreadable(path, "consumerOffset.json", error) from error


def read_broadcast_offsets(path: Path) -> tuple[tuple[MessageQueue, int], ...]:
    """Return (queue, next offset to consume) in a broadcasting member's ``offsets.json``, sorted by queue.

    Keys are objects, or the same as text. Raises as ``read_consumer_offsets`` does.
    """
    body = _content(path)
    try:
        fields = shapes.mapping(fastjson.parse(body), "offsets")
        table = shapes.mapping(fields.get("offsetTable"), "offsetTable")
        offsets = [(_queue(key), shapes.integer(value, f"offset of {key!r:.60}")) for key, value in table.items()]
    except (BodyError, JsonError) as error:
        raise _unreadable(path, "offsets.json", error) from error
    return tuple(sorted(offsets))


def _queue(key: Key) -> MessageQueue:
    if not isinstance(key, str):
        return shapes.queue(key, "offsetTable")
    fields = shapes.mapping(fastjson.parse(key.encode()), "a key of offsetTable")
    return MessageQueue(
        topic=shapes.text(fields.get("topic"), "topic of a key"),
        broker=shapes.text(fields.get("brokerName"), "brokerName of a key"),
        queue_id=shapes.integer(fields.get("queueId"), "queueId of a key"),
    )


def _content(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_FILE:
            raise DocumentError(f"{path} has {size} bytes, expected at most {MAX_FILE}: give an offset file")
        return path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path} cannot be read ({error}): check the path and its permissions") from error


def _unreadable(path: Path, kind: str, error: Exception) -> DocumentError:
    return DocumentError(f"{path} is no {kind} of RocketMQ ({error}): give the file of a broker or client, or its .bak")
