"""What a snapshot keeps of how its clients run, which forecasts of a change rest on."""

from dataclasses import replace

import pytest

from planner.model.brokers import BrokerState, GroupSettings, release
from planner.model.membership import Member, TopicFigures
from planner.snapshot.setups import client_setups, notifies_changes
from tests.sample_builders import tuning, watch


def members(**changes: object) -> tuple[Member, ...]:
    told = [member for member in watch(1)[0].members if isinstance(member, Member)]
    return tuple(replace(member, **changes) for member in told)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ordinal", "name"),
    [(373, None), (393, "4.9.0"), (403, "4.9.5"), (413, "5.0.0"), (453, "5.2.0"), (513, "5.5.0"), (514, "5.5.1")],
)
def test_ordinals_are_releases(ordinal: int, name: str | None) -> None:
    assert release(ordinal) == name


def test_a_client_tells_version_threads_time_of_a_call_and_settings() -> None:
    told = replace(tuning(rt_ms=20.0, threads=2), properties=(("awaitTerminationMillisWhenShutdown", "3000"),))
    first, *_ = client_setups(members(tuning=told))
    assert (first.client, first.language, first.version) == ("10.0.0.1@1", "JAVA", "5.5.0")
    assert (first.orderly, first.threads, first.call_s) == (False, 2, 0.02)
    assert dict(first.settings) == {
        "consumeMessageBatchMaxSize": "1",
        "pullThresholdForQueue": "1000",
        "awaitTerminationMillisWhenShutdown": "3000",
    }


def test_the_time_of_a_call_is_weighted_by_the_topics_rates_and_unknown_without_calls() -> None:
    figures = (TopicFigures("a", 10.0, 30.0, 0.0), TopicFigures("b", 50.0, 10.0, 0.0), TopicFigures("c", 0.0, 0.0, 0.0))
    (first, *_) = client_setups(members(tuning=replace(tuning(), figures=figures)))
    (idle, *_) = client_setups(members(tuning=tuning(rt_ms=0.0)))
    assert first.call_s == 0.02
    assert idle.call_s is None


def test_a_silent_client_tells_its_version_alone() -> None:
    (first, *_) = client_setups(members(tuning=None))
    assert (first.version, first.orderly, first.threads, first.call_s, first.settings) == (
        "5.5.0",
        None,
        None,
        None,
        (),
    )


def test_one_broker_that_does_not_notify_is_enough_and_one_that_is_silent_leaves_it_open() -> None:
    loud = BrokerState("a", settings=GroupSettings(True, True, True, 1, 16))
    mute = BrokerState("b", settings=GroupSettings(True, True, False, 1, 16))
    silent = BrokerState("c")
    assert notifies_changes((loud, loud)) is True
    assert notifies_changes((loud, mute, silent)) is False
    assert notifies_changes((loud, silent)) is None
    assert notifies_changes(()) is None
