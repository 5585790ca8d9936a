"""Names of groups as folders: whatever a broker calls a group, its files lie in a folder of its own, and come back."""

from dataclasses import replace
from pathlib import Path

import pytest

from planner.documents.data import SAMPLE
from planner.errors import BadInputError
from planner.pipeline import land_samples
from planner.storage.landing import sample_files
from planner.storage.layout import MOST_BYTES, file_name, group_folder, metrics_mark, name_of_file
from tests.sample_builders import steady, watch

NAMES = [
    ".",
    "..",
    "...",
    ".hidden",
    "%RETRY%shop",
    "a/b",
    "../../etc",
    "\x00",
    "\ud800",
    "团队",
    "%2E",
    "a" * MOST_BYTES,
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_one_folder_below_its_parent_and_is_read_back(tmp_path: Path, name: str) -> None:
    segment = file_name(name)
    assert (tmp_path / segment).resolve().parent == tmp_path.resolve()
    (tmp_path / segment).mkdir()
    assert [name_of_file(path.name) for path in tmp_path.iterdir()] == [name]


def test_no_two_names_share_a_folder() -> None:
    assert len({file_name(name) for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize("name", ["", "a" * (MOST_BYTES + 1), "团" * 40])
def test_a_name_that_no_file_system_takes_is_one_sentence(tmp_path: Path, name: str) -> None:
    for path in (
        lambda: group_folder(tmp_path, "kafka", "c", name),
        lambda: metrics_mark(tmp_path, "kafka", name, "g"),
    ):
        with pytest.raises(
            BadInputError, match=r"bytes as a file name, expected 1 to 255: rename the group"
        ) as refused:
            path()
        assert len(str(refused.value)) < 300


def test_samples_of_a_group_that_is_named_like_the_folder_above_are_found_as_its_own(tmp_path: Path) -> None:
    """Red where the group .. writes into the folder of clusters, and its samples are another group's, or nobody's."""
    first, second, *_ = watch(3, steady(60, 55))
    land_samples(tmp_path, [replace(first, group=".."), replace(second, group=".", cluster="..")])
    found = {sample.key: SAMPLE.read(sample.path) for sample in sample_files(tmp_path)}
    assert found == {
        ("rocketmq", first.cluster, ".."): replace(first, group=".."),
        ("rocketmq", "..", "."): replace(second, group=".", cluster=".."),
    }


def test_a_second_sample_of_the_same_time_replaces_none_and_keeps_no_other_out(tmp_path: Path) -> None:
    first, second, third = watch(3, steady(60, 55))[:3]
    other = replace(second, problems=("another look",))
    with pytest.raises(BadInputError, match=r"found 1 samples that differ from one of the same group and time, .*json"):
        land_samples(tmp_path, [first, second, other, third])
    found = [SAMPLE.read(sample.path) for sample in sample_files(tmp_path)]
    assert found == [first, second, third]
    assert len(land_samples(tmp_path, [first, second, third])) == 3
