"""What brokers say that a reset means: counts of what they keep, ages by their answers for a time."""

from bisect import bisect_left
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from planner.deployments.offsets.actions import KeptOffsets, Offsets
from planner.deployments.offsets.ages import ask_brokers
from planner.documents.migration import parse_request, reset_messages_document
from planner.errors import DocumentError
from planner.model.queues import Queue, TopicPartition
from planner.rollout.migrations.requests import ResetMessages, ResetRequest
from planner.rollout.steps import ResetOffsets

AT = datetime(2026, 11, 26, 12, tzinfo=UTC)
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@dataclass
class Brokers:
    """Messages by their ages in seconds, oldest first; the first ``deleted`` of each queue are gone."""

    ages: dict[Queue, list[float]]
    commits: dict[Queue, int]
    deleted: int = 0
    answers_nearest: bool = False
    asked: list[datetime] = field(default_factory=list)

    def committed(self, group: str) -> Offsets:  # noqa: ARG002
        return self.commits

    def since(self, group: str, time: datetime) -> Offsets:  # noqa: ARG002
        self.asked.append(time)
        return {queue: self._since(ages, time) for queue, ages in self.ages.items()}

    def _since(self, ages: list[float], time: datetime) -> int:
        offset = bisect_left([AT - timedelta(seconds=age) for age in ages], time)
        return max(min(offset, len(ages) - self.answers_nearest), self.deleted)

    def kept(self, group: str) -> dict[Queue, KeptOffsets]:  # noqa: ARG002
        return {queue: KeptOffsets(self.deleted, len(ages)) for queue, ages in self.ages.items()}

    def clone(self, origin: str, group: str) -> None: ...

    def commit(self, group: str, offsets: Offsets) -> None: ...


def ask(brokers: Brokers, **to: object) -> ResetMessages:
    return ask_brokers(brokers, ResetOffsets("g", "set the offsets of g", 60, **to), AT)  # type: ignore[arg-type]


def test_both_directions_are_counted_with_the_age_of_the_oldest() -> None:
    brokers = Brokers({A: [86_400.0, 7_200.0, 60.0], B: [3_600.0, 30.0]}, {A: 2, B: 1})
    back, ahead = ask(brokers, to_end="earliest"), ask(brokers, to_end="latest")
    assert (back.repeated, back.skipped, back.oldest_skipped_s) == (3, 0, None)
    assert (ahead.repeated, ahead.skipped, ahead.oldest_repeated_s) == (0, 2, None)
    assert back.oldest_repeated_s == pytest.approx(86_400, rel=0.05)
    assert ahead.oldest_skipped_s == pytest.approx(60, rel=0.05)
    assert back.unknowns == ahead.unknowns == ()


def test_a_time_means_both_on_different_queues() -> None:
    brokers = Brokers({A: [86_400.0, 7_200.0, 60.0], B: [3_600.0, 1_800.0]}, {A: 3, B: 0})
    found = ask(brokers, to_time=AT - timedelta(seconds=2_000))
    assert (found.repeated, found.skipped) == (1, 1)
    assert found.oldest_repeated_s == pytest.approx(60, rel=0.05)
    assert found.oldest_skipped_s == pytest.approx(3_600, rel=0.05)


def test_what_brokers_no_longer_keep_neither_comes_again_nor_is_left_out() -> None:
    brokers = Brokers({A: [9_000.0, 8_000.0, 7_000.0, 60.0]}, {A: 3}, deleted=2)
    back = ask(brokers, to_end="earliest")
    assert back.repeated == 1
    assert back.oldest_repeated_s == pytest.approx(7_000, rel=0.05)
    assert ask(Brokers({A: [9_000.0, 60.0]}, {A: 0}, deleted=1), to_end="latest").skipped == 1


def test_a_message_of_this_moment_has_an_age_below_a_second() -> None:
    assert (ask(Brokers({A: [0.0]}, {A: 0}), to_end="latest").oldest_skipped_s or 9.0) <= 1.0


def test_what_nobody_knows_is_named() -> None:
    unread = ask(Brokers({A: [60.0], B: [60.0]}, {A: 0}), to_end="latest")
    assert unread.skipped == 1
    assert unread.unknowns == ("what becomes of the messages of t/1: the group has no offset there yet",)
    nearest = ask(Brokers({A: [900.0, 60.0]}, {A: 1}, answers_nearest=True), to_end="latest")
    assert (nearest.skipped, nearest.oldest_skipped_s) == (1, None)
    assert nearest.unknowns[0].startswith("how old the messages are that are left out: for a time of which t/0 has")
    timeless = ask(Brokers({A: [1e10]}, {A: 0}), to_end="latest")
    assert (timeless.skipped, timeless.oldest_skipped_s) == (1, None)
    assert "none that a broker finds them by" in timeless.unknowns[0]


def test_the_answer_travels_with_the_request() -> None:
    said = ResetMessages(at=AT, repeated=3, skipped=0, oldest_repeated_s=86_400.0, unknowns=("x",))
    request = parse_request({"kind": "reset", "to": "earliest", "brokers": reset_messages_document(said)}, "request")
    assert isinstance(request, ResetRequest)
    assert request.brokers == said
    for wrong in ({"repeated": -1}, {"oldestSkippedS": 1e300}, {"at": "2026-11-26T12:00:00"}):
        with pytest.raises(DocumentError):
            parse_request(
                {"kind": "reset", "to": "earliest", "brokers": {**reset_messages_document(said), **wrong}}, "request"
            )
