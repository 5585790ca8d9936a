"""Looking at many groups several times: who fails once, at last, always."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from planner.errors import OutOfReachError, PlannerError, UnknownNameError
from planner.model.samples import GroupSample
from planner.sources import kafka, rocketmq
from planner.sources.kafka.answers import GroupList
from planner.sources.live import LEAST_READINGS
from planner.sources.survey import ANY_GROUP, OpenInstallation, Survey, open_kafka, open_rocketmq, survey
from tests.sample_builders import watch

GONE = OutOfReachError("nobody answers")


def ground(**courses: Sequence[PlannerError | None]) -> tuple[OpenInstallation, list[Sequence[str]]]:
    """Return groups that answer as their courses say, look by look; ``None`` stands for a sample."""
    asked: list[Sequence[str]] = []
    sample = watch(1)[0]

    def look(groups: Sequence[str], _: datetime) -> Iterator[tuple[str, GroupSample | PlannerError]]:
        asked.append(tuple(groups))
        for group in groups:
            yield group, courses[group][len(asked) - 1] or sample

    return OpenInstallation(tuple(courses), look), asked


def looks(**courses: Sequence[PlannerError | None]) -> tuple[Survey, list[Sequence[str]]]:
    opened, asked = ground(**courses)
    return survey(opened, 0.0, lambda _: None, named=False), asked


def test_there_are_two_looks_at_least() -> None:
    found, asked = looks(shop=(None, None))
    assert len(asked) == len(found.samples["shop"]) == LEAST_READINGS


def test_a_group_that_fails_once_keeps_its_other_look_and_is_read() -> None:
    found, _ = looks(shop=(GONE, None))
    assert len(found.samples["shop"]) == 1
    assert found.failures == {}


def test_a_group_that_fails_at_last_is_told_and_named() -> None:
    """As one that was deleted in between."""
    found, _ = looks(shop=(None, UnknownNameError("no such group")))
    assert len(found.samples["shop"]) == 1
    assert set(found.failures) == {"shop"}


def test_a_group_that_is_never_read_is_named() -> None:
    found, _ = looks(shop=(None, None), lost=(GONE, GONE))
    assert set(found.samples) == {"shop"}
    assert set(found.failures) == {"lost"}


def test_groups_that_have_settings_only_are_counted_and_not_asked_again() -> None:
    found, asked = looks(shop=(None, None), empty=(UnknownNameError("neither members nor offsets"), None))
    assert found.unused == {"empty"}
    assert asked[1] == ("shop",)


def test_a_group_that_was_asked_for_by_name_is_not_just_unused() -> None:
    opened, _ = ground(typo=(UnknownNameError("no such group"),) * 2)
    found = survey(opened, 0.0, lambda _: None, named=True)
    assert (found.unused, set(found.failures)) == (set(), {"typo"})


def test_a_long_survey_keeps_few_looks() -> None:
    found = Survey()
    for sample in watch(200):
        found.note("shop", sample, named=True)
    assert len(found.samples["shop"]) < 80


def test_what_brokers_do_not_list_is_told() -> None:
    opened, _ = ground(shop=(None, None))
    found = survey(replace(opened, problems=("broker 2 is silent",)), 0.0, lambda _: None, named=False)
    assert found.problems == [(ANY_GROUP, "broker 2 is silent")]


def test_when_nobody_answers_any_more_what_was_seen_is_kept() -> None:
    """As when the only name server restarts between two looks at a thousand groups."""
    opened, asked = ground(shop=(None,), lost=(None,))

    def look(groups: Sequence[str], at: datetime) -> Iterator[tuple[str, GroupSample | PlannerError]]:
        if asked:
            raise GONE
        return opened.read(groups, at)

    found = survey(replace(opened, read=look), 0.0, lambda _: None, named=False)
    assert {group: len(samples) for group, samples in found.samples.items()} == {"shop": 1, "lost": 1}
    assert found.failures == {"shop": GONE, "lost": GONE}


def test_when_nobody_answers_at_first_there_is_nothing_to_wait_for() -> None:
    opened, _ = ground(shop=(None,))

    def look(*_: object) -> Iterator[tuple[str, GroupSample | PlannerError]]:
        raise GONE

    with pytest.raises(OutOfReachError, match="nobody answers"):
        survey(replace(opened, read=look), 3600.0, lambda _: None, named=False)


class Brokers:
    """Stands for an admin client of either system."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __enter__(self) -> "Brokers":
        return self

    def __exit__(self, *_: object) -> None: ...

    def list_groups(self) -> GroupList:
        return GroupList((), ("broker 2 does not list its groups: refused",))


@pytest.mark.parametrize("system", ["rocketmq", "kafka"])
def test_no_group_at_all_from_some_of_the_brokers_is_out_of_reach(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later try may find groups: this is no mistake in the address."""
    monkeypatch.setattr(kafka, "KafkaAdmin", Brokers)
    monkeypatch.setattr(rocketmq, "RocketMQAdmin", Brokers)
    problems = ("broker 2 does not report which groups there are: refused",)
    monkeypatch.setattr(rocketmq, "list_groups", lambda *_: rocketmq.GroupList((), problems))
    opened = open_kafka("a:1", ()) if system == "kafka" else open_rocketmq("a:1", None, ())
    with pytest.raises(OutOfReachError, match=r"a:1 reports no consumer group.*broker 2"), opened:
        pass
