"""Readings: every group's line is found and given back byte for byte, beside files of one sample, whatever its name."""

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from planner import pipeline
from planner.documents.data import SAMPLE
from planner.errors import BadInputError, DocumentError
from planner.model.samples import GroupSample
from planner.runs.landed import ReadingsLander, newest_sample, read_sample
from planner.runs.past_runs import forget_samples
from planner.storage.landing import (
    SET_ASIDE,
    LandedSample,
    first_times,
    landed_at,
    misnamed_files,
    reading_files,
    sample_files,
    samples_of_group,
    samples_of_reading,
    set_reading_aside,
    take_out,
)
from planner.storage.layout import time_name
from planner.storage.readings import line_of_group
from tests.sample_builders import START, watch

FIRST, SECOND, THIRD = watch(3)[:3]
NAMES = [
    "a",
    "a b",
    "a-b",
    'a"b',
    "a\\b",
    "ab",
    "b",
    "%RETRY%shop",
    "团队",
    "..",
    "a/b",
    "a\nb",
    "a#1+2#b",
    "\x00",
    "z" * 255,
]


def land(data: Path, *samples: GroupSample) -> list[Path]:
    lander = ReadingsLander(data)
    for sample in samples:
        lander.add(sample)
    lander.finish()
    return list(reading_files(data))


def named(sample: GroupSample, *groups: str) -> list[GroupSample]:
    return [replace(sample, group=group) for group in groups]


def key(sample: GroupSample) -> tuple[str, str, str]:
    return sample.system, sample.cluster, sample.group


def test_each_group_of_a_reading_is_found_and_given_back_byte_for_byte(tmp_path: Path) -> None:
    names = [*NAMES, *map(str, range(60))]
    random.Random(1).shuffle(names)
    (path,) = land(tmp_path, *named(FIRST, *names))
    landed, fault = samples_of_reading(path)
    assert fault is None
    assert sorted(sample.key[2] for sample in landed) == sorted(names)
    for sample in landed:
        value = replace(FIRST, group=sample.key[2])
        assert sample.document() == SAMPLE.dump(value)
        assert landed_at(sample.location) == sample
        assert list(samples_of_group(tmp_path, sample.key, "~")) == [sample]
        assert read_sample(sample) == value
    assert line_of_group(path, "absent") is None
    assert {path.read_bytes()[sample.line.start - 1 :][:1] for sample in landed[1:] if sample.line} == {b"\n"}


def test_a_reading_written_again_is_one_file_and_another_of_its_time_replaces_none(tmp_path: Path) -> None:
    (once,) = land(tmp_path, FIRST)
    assert land(tmp_path, FIRST) == [once]
    other = replace(FIRST, problems=("another look",))
    assert len(land(tmp_path, other)) == 2
    assert {read_sample(sample).problems for sample in samples_of_group(tmp_path, key(FIRST), "~")} == {
        FIRST.problems,
        other.problems,
    }


def test_both_layouts_are_read_as_one_past_newest_first(tmp_path: Path) -> None:
    pipeline.land_samples(tmp_path, [FIRST, THIRD])
    land(tmp_path, SECOND, *named(SECOND, "bank"))
    samples = [read_sample(sample) for sample in samples_of_group(tmp_path, key(FIRST), time_name(THIRD.at))]
    assert samples == [THIRD, SECOND, FIRST]
    assert newest_sample(tmp_path, key(FIRST), SECOND.at) == SECOND
    assert newest_sample(tmp_path, key(FIRST), FIRST.at - timedelta(seconds=1)) is None
    assert first_times(tmp_path) == {
        key(FIRST): time_name(FIRST.at),
        (FIRST.system, FIRST.cluster, "bank"): time_name(SECOND.at),
    }
    forget_samples(tmp_path, THIRD.at)
    assert [read_sample(sample) for sample in sample_files(tmp_path)] == [THIRD]
    assert not list(reading_files(tmp_path))


def test_a_large_reading_becomes_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Red where a second file of the same time replaces the first."""
    monkeypatch.setattr("planner.runs.landed.MOST_READING_BYTES", 3 * len(SAMPLE.dump(FIRST)))
    paths = land(tmp_path, *named(FIRST, *map(str, range(7))))
    assert len(paths) == 3
    assert sorted(sample.key[2] for path in paths for sample in samples_of_reading(path)[0]) == list("0123456")


@pytest.mark.parametrize(
    ("damage", "left", "reason"),
    [
        (lambda _: b"", [], "empty"),
        (lambda text: text[: len(text) // 2], ["a"], "no whole line"),
        (lambda text: text[:-1], ["a", "b"], "no whole line"),
        (lambda text: b"".join(reversed(text.splitlines(keepends=True))), ["c"], "out of order"),
        (lambda text: text + text.splitlines(keepends=True)[-1], ["a", "b", "c"], "out of order"),
        (lambda text: text.replace(b'"b"', b'"\xff"', 1), ["a"], "no text"),
        (lambda _: b"\xff\xfe\x00" * 100, [], "no whole line"),
        (lambda _: b'{"group":"' + b"x" * 10_000_000 + b"\n", [], "no whole line"),
    ],
    ids=["empty", "half", "no end", "reversed", "repeated", "no text", "no file of ours", "endless name"],
)
def test_of_a_damaged_reading_the_whole_lines_before_the_fault_stay(
    damage: object, left: list[str], reason: str, tmp_path: Path
) -> None:
    (path,) = land(tmp_path, *named(FIRST, "a", "b", "c"))
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    samples, fault = samples_of_reading(path)
    assert [sample.key[2] for sample in samples] == left
    assert reason in str(fault)
    sentence = set_reading_aside(tmp_path, path, samples, str(fault))
    assert f"lies in {path.parent / SET_ASIDE}" in sentence
    assert not list(reading_files(tmp_path))
    assert [read_sample(sample) for sample in sample_files(tmp_path)] == named(FIRST, *left)


def test_a_line_that_was_edited_is_refused_and_never_another_groups(tmp_path: Path) -> None:
    (path,) = land(tmp_path, *named(FIRST, "a", "b"))
    first, second = samples_of_reading(path)[0]
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"cluster":"D', b'"cluster":"X', 1))
    with pytest.raises(BadInputError, match="digest"):
        read_sample(first)
    lines = [
        line.replace(b'{"group":"a","sample"', b'{"group":"0","sample"') for line in text.splitlines(keepends=True)
    ]
    path.write_bytes(b"".join(lines))
    with pytest.raises(DocumentError, match=r"found a sample of \w+ \w+ a at .*, expected \w+ \w+ 0 at"):
        read_sample(samples_of_reading(path)[0][0])
    path.write_bytes(text[5:])
    with pytest.raises(DocumentError, match="no line of group b at byte"):
        read_sample(second)
    path.unlink()
    with pytest.raises(BadInputError, match="cannot be read"):
        read_sample(second)


def test_what_leaves_a_reading_is_the_file_that_it_would_have_been(tmp_path: Path) -> None:
    (path,) = land(tmp_path, *named(FIRST, "..", "shop"))
    take_out(tmp_path, samples_of_reading(path)[0])
    (tmp_path / "other").mkdir()
    pipeline.land_samples(tmp_path / "other", named(FIRST, "..", "shop"))
    both = [[sample.document() for sample in sample_files(data)] for data in (tmp_path, tmp_path / "other")]
    assert both[0] == both[1]


def test_files_that_are_not_named_like_readings_are_named(tmp_path: Path) -> None:
    (path,) = land(tmp_path, FIRST)
    for name in ("notes.jsonl", "20269999T999999.999Z-0123456789ab.jsonl", f"{time_name(START)}.jsonl"):
        path.with_name(name).write_text("{}\n", encoding="utf-8")
    assert len(list(misnamed_files(tmp_path))) == 3
    assert [read_sample(sample) for sample in samples_of_group(tmp_path, key(FIRST), "~")] == [FIRST]
    assert isinstance(next(samples_of_group(tmp_path, key(FIRST), "~")), LandedSample)
