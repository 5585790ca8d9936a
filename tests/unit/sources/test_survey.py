"""Looking at many groups several times: who fails once, at last, always."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from planner.errors import OutOfReachError, PlannerError, UnknownNameError
from planner.model.samples import GroupSample
from planner.sources.live import LEAST_LOOKS
from planner.sources.survey import Ground, Survey, survey
from tests.sample_builders import watch

GONE = OutOfReachError("nobody answers")


def ground(**courses: Sequence[PlannerError | None]) -> tuple[Ground, list[Sequence[str]]]:
    """Return groups that answer as their courses say, look by look; ``None`` stands for a sample."""
    asked: list[Sequence[str]] = []
    sample = watch(1)[0]

    def look(groups: Sequence[str], _: datetime) -> Iterator[tuple[str, GroupSample | PlannerError]]:
        asked.append(tuple(groups))
        for group in groups:
            yield group, courses[group][len(asked) - 1] or sample

    return Ground(tuple(courses), look), asked


def looks(**courses: Sequence[PlannerError | None]) -> tuple[Survey, list[Sequence[str]]]:
    opened, asked = ground(**courses)
    return survey(opened, 0.0, lambda _: None, named=False), asked


def test_there_are_two_looks_at_least() -> None:
    found, asked = looks(shop=(None, None))
    assert len(asked) == len(found.samples["shop"]) == LEAST_LOOKS


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
