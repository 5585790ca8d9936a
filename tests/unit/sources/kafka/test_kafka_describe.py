"""Describing groups where a real broker is hard to get there: moved coordinators, foreign protocols, old versions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from planner.errors import BadInputError, OutOfReachError, PlannerError, UnknownNameError
from planner.model.queues import TopicPartition
from planner.sources.kafka import AnswerError, requests, wire
from planner.sources.kafka.answers import GroupDescription
from planner.sources.kafka.connection import Address
from planner.sources.kafka.describe import describe_groups
from planner.sources.kafka.requests import Api, Coordinator, Listing, WireGroup, WireMember

NOT_COORDINATOR, NOT_FOUND, UNSUPPORTED_VERSION = 16, 69, 35
METADATA = wire.int16(1) + wire.int32(1) + wire.text("t") + wire.int32(-1) + wire.int32(0)
ASSIGNMENT = wire.int16(1) + wire.int32(1) + wire.text("t") + wire.int32(1) + wire.int32(2) + wire.int32(-1)


def classic(state: str = "Stable", kind: str = "consumer", metadata: bytes = METADATA, code: int = 0) -> WireGroup:
    member = WireMember("m-1", None, "m", "/10.0.0.1", metadata, ASSIGNMENT, is_classic=True)
    return WireGroup("g", code, "", state, kind, "range", (member,))


@dataclass
class FakeLinks:
    """The brokers of a cluster as scripted answers, each request's one after the other, the last again and again."""

    answers: dict[str, list[Any]]
    is_old: bool = False
    asked: list[str] = field(default_factory=list)

    def anywhere(self, ask: Callable[["FakeLinks"], Any]) -> Any:
        return ask(self)

    def at(self, _: Address, ask: Callable[["FakeLinks"], Any]) -> Any:
        return ask(self)

    def version(self, api: Api[Any]) -> int | None:
        return None if self.is_old and api is requests.CONSUMER_GROUP_DESCRIBE else api.versions[1]

    def ask(self, api: Api[Any], _: object) -> Any:
        self.asked.append(api.name)
        scripted = self.answers[api.name]
        answer = scripted.pop(0) if len(scripted) > 1 else scripted[0]
        if isinstance(answer, PlannerError):
            raise answer
        return answer


def links(*described: tuple[WireGroup, ...], kinds: tuple[Listing, ...] = (), is_old: bool = False) -> FakeLinks:
    return FakeLinks(
        {
            "FindCoordinator": [(Coordinator("g", 1, "h", 9092, 0, ""),)],
            "ConsumerGroupDescribe": [(WireGroup("g", NOT_FOUND, "", "", "consumer", "", (), 0, 0),)],
            "DescribeGroups": list(described),
            "ListGroups": [(0, kinds)],
        },
        is_old,
    )


def described(fake: FakeLinks) -> GroupDescription | PlannerError:
    return describe_groups(fake, ["g"])["g"]  # type: ignore[arg-type]


def test_a_coordinator_that_moved_is_asked_for_once_more() -> None:
    fake = links((classic(code=NOT_COORDINATOR),), (classic(),))
    found = described(fake)
    assert isinstance(found, GroupDescription)
    assert found.members[0].owned == (TopicPartition("t", 2),)
    assert fake.asked.count("FindCoordinator") == 2


def test_a_coordinator_that_goes_on_moving_is_an_error() -> None:
    found = described(links((classic(code=NOT_COORDINATOR),)))
    assert isinstance(found, AnswerError)
    assert "NOT_COORDINATOR" in str(found)


def test_a_broker_without_kip_848_is_asked_the_classic_way_alone() -> None:
    fake = links((classic(),), is_old=True)
    assert isinstance(described(fake), GroupDescription)
    assert fake.asked == ["FindCoordinator", "DescribeGroups"]


def test_a_broker_that_offers_kip_848_and_refuses_it_is_asked_the_classic_way() -> None:
    fake = links((classic(),))
    refusal = WireGroup("g", UNSUPPORTED_VERSION, "", "", "consumer", "", (), 0, 0)
    fake.answers["ConsumerGroupDescribe"] = [(refusal,)]
    assert isinstance(described(fake), GroupDescription)


def test_a_subscription_of_somebodys_own_is_named_and_unknown() -> None:
    found = described(links((classic(metadata=b"their own"),)))
    assert isinstance(found, GroupDescription)
    assert (found.members[0].topics, found.members[0].owned) == (None, None)
    assert found.problems[0].startswith("member m-1 has a subscription of its own making")


def test_a_connect_group_is_refused_by_its_kind() -> None:
    found = described(links((classic(kind="connect"),)))
    assert isinstance(found, BadInputError)
    assert "is a connect group" in str(found)


def test_a_streams_group_is_found_by_the_list_of_groups() -> None:
    dead = WireGroup("g", 0, "", "Dead", "", "", ())
    found = described(links((dead,), kinds=(Listing("g", "streams", "Stable", "streams"),)))
    assert isinstance(found, BadInputError)
    assert "is a streams group" in str(found)


@pytest.mark.parametrize("kind", ["classic", "consumer", ""])
def test_a_group_that_began_after_it_was_asked_for_was_not_there(kind: str) -> None:
    dead = WireGroup("g", 0, "", "Dead", "", "", ())
    found = described(links((dead,), kinds=(Listing("g", "consumer", "Stable", kind),)))
    assert isinstance(found, UnknownNameError)


def test_a_coordinator_out_of_reach_is_an_error_of_its_groups() -> None:
    fake = links((classic(),))
    fake.answers["ConsumerGroupDescribe"] = [OutOfReachError("broker h:9092 did not answer")]
    assert str(described(fake)) == "broker h:9092 did not answer"
