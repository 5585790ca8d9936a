"""Describing groups where a real broker is hard to get there: moved coordinators, foreign protocols, old versions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from planner.errors import BadInputError, OutOfReachError, PlannerError, UnknownNameError
from planner.model.queues import TopicPartition
from planner.sources.kafka import AnswerError, requests, wire
from planner.sources.kafka.answers import Commits, GroupDescription
from planner.sources.kafka.connection import Address
from planner.sources.kafka.describe import describe_groups
from planner.sources.kafka.requests import (
    Api,
    Coordinator,
    Listing,
    WireGroup,
    WireMember,
    WireSharedOffsets,
    WireShareOffsets,
)
from planner.sources.kafka.share_lags import SharePositions, share_lags

NOT_COORDINATOR, NOT_FOUND, UNSUPPORTED_VERSION = 16, 69, 35
METADATA = wire.int16(1) + wire.int32(1) + wire.text("t") + wire.int32(-1) + wire.int32(0)
ASSIGNMENT = wire.int16(1) + wire.int32(1) + wire.text("t") + wire.int32(1) + wire.int32(2) + wire.int32(-1)


def classic(state: str = "Stable", kind: str = "consumer", metadata: bytes = METADATA, code: int = 0) -> WireGroup:
    member = WireMember("m-1", None, "m", "/10.0.0.1", metadata, ASSIGNMENT, is_classic=True)
    return WireGroup("g", code, "", state, kind, "range", (member,))


@dataclass
class FakeConnections:
    """The brokers of a cluster as scripted answers, each request's one after the other, the last again and again."""

    answers: dict[str, list[Any]]
    is_old: bool = False
    hides_lags: bool = False
    asked: list[str] = field(default_factory=list)

    def anywhere(self, ask: Callable[["FakeConnections"], Any]) -> Any:
        return ask(self)

    def at(self, _: Address, ask: Callable[["FakeConnections"], Any]) -> Any:
        return ask(self)

    def version(self, api: Api[Any]) -> int | None:
        is_lacking = api is requests.DESCRIBE_SHARE_GROUP_OFFSETS and self.hides_lags
        is_lacking = is_lacking or (self.is_old and api is requests.CONSUMER_GROUP_DESCRIBE)
        return None if is_lacking else api.versions[1]

    def ask(self, api: Api[Any], _: object) -> Any:
        self.asked.append(api.name)
        scripted = self.answers[api.name]
        answer = scripted.pop(0) if len(scripted) > 1 else scripted[0]
        if isinstance(answer, PlannerError):
            raise answer
        return answer


def connections(
    *described: tuple[WireGroup, ...], kinds: tuple[Listing, ...] = (), is_old: bool = False
) -> FakeConnections:
    return FakeConnections(
        {
            "FindCoordinator": [(Coordinator("g", 1, "h", 9092, 0, ""),)],
            "ConsumerGroupDescribe": [(WireGroup("g", NOT_FOUND, "", "", "consumer", "", (), 0, 0),)],
            "DescribeGroups": list(described),
            "ListGroups": [(0, kinds)],
        },
        is_old,
    )


def described(fake: FakeConnections) -> GroupDescription | PlannerError:
    return describe_groups(fake, ["g"])["g"]  # type: ignore[arg-type]


def test_a_coordinator_that_moved_is_asked_for_once_more() -> None:
    fake = connections((classic(code=NOT_COORDINATOR),), (classic(),))
    found = described(fake)
    assert isinstance(found, GroupDescription)
    assert found.members[0].owned == (TopicPartition("t", 2),)
    assert fake.asked.count("FindCoordinator") == 2


def test_a_coordinator_that_goes_on_moving_is_an_error() -> None:
    found = described(connections((classic(code=NOT_COORDINATOR),)))
    assert isinstance(found, AnswerError)
    assert "NOT_COORDINATOR" in str(found)


def test_a_broker_without_kip_848_is_asked_the_classic_way_alone() -> None:
    fake = connections((classic(),), is_old=True)
    assert isinstance(described(fake), GroupDescription)
    assert fake.asked == ["FindCoordinator", "DescribeGroups"]


def test_a_broker_that_offers_kip_848_and_refuses_it_is_asked_the_classic_way() -> None:
    fake = connections((classic(),))
    refusal = WireGroup("g", UNSUPPORTED_VERSION, "", "", "consumer", "", (), 0, 0)
    fake.answers["ConsumerGroupDescribe"] = [(refusal,)]
    assert isinstance(described(fake), GroupDescription)


def test_a_subscription_of_somebodys_own_is_named_and_unknown() -> None:
    found = described(connections((classic(metadata=b"their own"),)))
    assert isinstance(found, GroupDescription)
    assert (found.members[0].topics, found.members[0].owned) == (None, None)
    assert found.problems[0].startswith("member m-1 has a subscription of its own making")


def test_a_connect_group_is_refused_by_its_kind() -> None:
    found = described(connections((classic(kind="connect"),)))
    assert isinstance(found, BadInputError)
    assert "is a connect group" in str(found)


def test_a_streams_group_is_found_by_the_list_of_groups() -> None:
    dead = WireGroup("g", 0, "", "Dead", "", "", ())
    found = described(connections((dead,), kinds=(Listing("g", "streams", "Stable", "streams"),)))
    assert isinstance(found, BadInputError)
    assert "is a streams group" in str(found)


@pytest.mark.parametrize("kind", ["classic", "consumer", ""])
def test_a_group_that_began_after_it_was_asked_for_was_not_there(kind: str) -> None:
    dead = WireGroup("g", 0, "", "Dead", "", "", ())
    found = described(connections((dead,), kinds=(Listing("g", "consumer", "Stable", kind),)))
    assert isinstance(found, UnknownNameError)


def test_a_coordinator_out_of_reach_is_an_error_of_its_groups() -> None:
    fake = connections((classic(),))
    fake.answers["ConsumerGroupDescribe"] = [OutOfReachError("broker h:9092 did not answer")]
    assert str(described(fake)) == "broker h:9092 did not answer"


SHARED = Listing("g", "share", "Stable", "share")


def share_connections(answer: WireGroup) -> FakeConnections:
    fake = connections((WireGroup("g", 0, "", "Dead", "", "", ()),), kinds=(SHARED,))
    fake.answers["ShareGroupDescribe"] = [(answer,)]
    return fake


def test_a_share_group_is_described_with_the_partitions_that_its_members_read() -> None:
    part = TopicPartition("t", 2)
    member = WireMember("m-1", None, "m", "/10.0.0.1", epoch=4, topics=("t",), owned=(part,))
    found = described(share_connections(WireGroup("g", 0, "", "Stable", "share", "simple", (member,), 4, 4)))
    assert isinstance(found, GroupDescription)
    assert (found.protocol, found.assignor, found.epoch) == ("share", "simple", 4)
    (only,) = found.members
    assert (only.protocol, only.owned, only.topics, only.host) == ("share", (part,), ("t",), "10.0.0.1")


def test_a_share_group_of_brokers_that_hide_its_lag_is_refused_by_name() -> None:
    fake = share_connections(WireGroup("g", 0, "", "Stable", "share", "simple", (), 4, 4))
    fake.hides_lags = True
    found = described(fake)
    assert isinstance(found, BadInputError)
    assert "group g is a share group" in str(found)
    assert "4.2 and later" in str(found)
    assert "ShareGroupDescribe" not in fake.asked


def test_a_share_group_that_ends_between_two_requests_is_not_there() -> None:
    found = described(share_connections(WireGroup("g", NOT_FOUND, "", "Dead", "share", "", (), 0, 0)))
    assert isinstance(found, UnknownNameError)


def test_lags_are_read_and_minus_one_is_unknown() -> None:
    parts = [TopicPartition("t", number) for number in range(3)]
    offsets = (
        WireShareOffsets(parts[0], 7, 3, 0, ""),
        WireShareOffsets(parts[1], -1, -1, 0, ""),
        WireShareOffsets(parts[2], -1, -1, 29, "denied"),
    )
    fake = connections()
    fake.answers["DescribeShareGroupOffsets"] = [(WireSharedOffsets("g", 0, "", offsets),)]
    commits = share_lags(fake, ["g"])["g"]  # type: ignore[arg-type]
    assert isinstance(commits, Commits)
    assert (commits.offsets, commits.lags, list(commits.errors)) == (
        {parts[0]: 7},
        {parts[0]: 3, parts[1]: None},
        [parts[2]],
    )
    fake.answers["DescribeShareGroupOffsets"] = [(WireSharedOffsets("g", 30, "denied", ()),)]
    assert isinstance(share_lags(fake, ["g"])["g"], AnswerError)  # type: ignore[arg-type]


def test_a_partition_that_a_share_answer_states_more_than_once_is_an_error() -> None:
    part, other = TopicPartition("t", 0), TopicPartition("t", 1)
    offsets = tuple(WireShareOffsets(queue, 7, lag, 0, "") for queue, lag in ((part, 3), (other, 3), (part, 2**62)))
    fake = connections()
    fake.answers["DescribeShareGroupOffsets"] = [(WireSharedOffsets("g", 0, "", offsets),)]
    commits = share_lags(fake, ["g"])["g"]  # type: ignore[arg-type]
    assert isinstance(commits, Commits)
    assert (commits.offsets, commits.lags, list(commits.errors)) == ({other: 7}, {other: 3}, [part])


@pytest.mark.parametrize(("oldest", "lag"), [(0, 253), (100, 2**63 - 1), (253, 0), (2**63 - 1, None)])
def test_more_than_a_partition_holds_is_no_lag_of_a_share_group(oldest: int, lag: int | None) -> None:
    """An absurd lag counted as all that the partition ever had, and an offset beyond its end as no lag."""
    part = TopicPartition("t", 0)
    placed = SharePositions().locate("g", Commits({part: oldest}, {}, {part: lag}), {part: 250}, {part: 252})
    assert isinstance(placed, Commits)
    assert (placed.offsets, placed.lags, list(placed.errors)) == ({}, {}, [part])


def positions(readings: list[tuple[int, int, int, int]]) -> list[int]:
    """Positions from (oldest record not done, lag, end before, end after), one reading after the other."""
    part, known = TopicPartition("t", 0), SharePositions()
    placed = [
        known.locate("g", Commits({part: oldest}, {}, {part: lag}), {part: before}, {part: after})
        for oldest, lag, before, after in readings
    ]
    return [one.offsets[part] for one in placed if isinstance(one, Commits)]


def test_the_position_of_a_share_group_that_stands_does_not_waver() -> None:
    """Red where what comes in between two requests moves it: a step back looks like an offset that was reset."""
    assert positions([(100, 150, 248, 252), (100, 400, 495, 503), (100, 650, 749, 751)]) == [100, 100, 100]
    out_of_order = [(100, 120, 248, 252), (100, 370, 495, 503), (100, 620, 749, 751)]
    assert positions(out_of_order) == [128, 128, 129]
    assert positions([(100, 120, 248, 252), (300, 700, 998, 1002), (10, 990, 998, 1002)]) == [128, 300, 10]
