"""Offset files of brokers and of broadcasting members: real ones, both forms, and others."""

from pathlib import Path

import pytest

from planner.errors import DocumentError, StorageError
from planner.model.queues import MessageQueue
from planner.sources.rocketmq import offset_files
from planner.sources.rocketmq.broker_answers import CommittedOffsets
from planner.sources.rocketmq.offset_files import read_broadcast_offsets, read_consumer_offsets
from tests.unit.sources.rocketmq import samples

REAL = (
    CommittedOffsets("GroupA", "%RETRY%GroupA", ((0, 0),)),
    CommittedOffsets("GroupA", "TopicA", ((0, 15), (1, 18), (2, 21), (3, 24))),
    CommittedOffsets("GroupA", "TopicB", ((0, 15), (1, 18))),
)
T = MessageQueue("T", "b", 1)


@pytest.mark.parametrize("version", samples.VERSIONS)
def test_file_of_a_real_broker(version: str) -> None:
    assert read_consumer_offsets(samples.FIXTURES / version / "consumerOffset.json") == REAL


def test_quoted_queue_ids_are_taken_too(tmp_path: Path) -> None:
    path = tmp_path / "consumerOffset.json"
    path.write_text('{"offsetTable":{"T@g":{"10":7,"9":8}}}')
    assert read_consumer_offsets(path) == (CommittedOffsets("g", "T", ((9, 8), (10, 7))),)


@pytest.mark.parametrize(
    "key", ['{"brokerName":"b","queueId":1,"topic":"T"}', r'"{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"T\"}"']
)
def test_file_of_a_broadcasting_member(tmp_path: Path, key: str) -> None:
    path = tmp_path / "offsets.json"
    path.write_text('{\n\t"offsetTable":{\n\t\t' + key + ":42\n\t}\n}")
    assert read_broadcast_offsets(path) == ((T, 42),)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"offsetTable":{"T@g":1}}', '{"offsetTable":{"x":1}}', "\x00"])
def test_something_else_is_refused_and_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(DocumentError, match=r"other\.json is no offsets\.json of RocketMQ \("):
        read_broadcast_offsets(path)
    if "x" not in text:
        with pytest.raises(DocumentError, match=r"other\.json is no consumerOffset\.json of RocketMQ \("):
            read_consumer_offsets(path)


def test_file_that_is_missing_or_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StorageError, match=r"gone\.json cannot be read"):
        read_consumer_offsets(tmp_path / "gone.json")
    monkeypatch.setattr(offset_files, "MAX_FILE", 3)
    (tmp_path / "long.json").write_text("{   }")
    with pytest.raises(DocumentError, match="has 5 bytes, expected at most 3"):
        read_consumer_offsets(tmp_path / "long.json")
