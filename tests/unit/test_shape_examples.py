"""Each folder of ``examples/shapes`` is read as users read it, and answers as its README says."""

from functools import cache

import pytest

from planner.decision.decision import Decision
from planner.rollout.plan import RolloutPlan
from tests.shape_examples import FOLDER, RECORDED, SHAPES, Example, answer_lines, answers, read

EXPECTED = {
    "argo-rollout-in-canary": ["PlanRefused"],
    "at-zero": [(0, 1)],
    "kafka-connect": ["OtherLever"],
    "kafka-streams": ["OtherLever"],
}
"""What must come of a shape, whatever figures its group has: a hold of this cause, or these counts."""


Answers = list[tuple[Decision, RolloutPlan | None]]


@cache
def answered(name: str) -> tuple[list[Example], Answers]:
    """Return a folder's groups, and what is answered."""
    examples = read(FOLDER / name)
    return examples, answers(examples)


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_answered_as_its_readme_says(name: str) -> None:
    examples, found = answered(name)
    readme = (FOLDER / name / "README.md").read_text(encoding="utf-8")
    for line in answer_lines(examples, found):
        assert line in readme
    decided = [decision for decision, _ in found]
    if name in EXPECTED:
        kinds = [str(one.hold_cause) if one.is_hold else (one.current, one.target) for one in decided]
        assert kinds == EXPECTED[name]
    else:
        assert any(not one.is_hold for one in decided), [one.reason for one in decided]


def test_every_folder_is_a_shape_of_the_table_and_says_where_its_snapshot_comes_from() -> None:
    assert sorted(path.name for path in FOLDER.iterdir() if path.is_dir()) == sorted(SHAPES)
    table = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name, shape in SHAPES.items():
        assert f"]({name}/)" in table
        readme = (FOLDER / name / "README.md").read_text(encoding="utf-8")
        is_recorded = shape.source.startswith(RECORDED.partition("{")[0])
        assert ("no broker gave these answers" in readme) is not is_recorded
        assert len(readme.splitlines()) < 40, "one screen"


def test_moves_of_a_kind_that_chooses_by_itself_are_a_range_and_of_a_rollout_one_number() -> None:
    def moved(name: str) -> tuple[int | None, int | None]:
        ((_, made),) = answered(name)[1]
        assert made is not None
        return made.forecast.moved_queues.fewest, made.forecast.moved_queues.most

    low, high = moved("other-scale-kind")
    assert low is not None
    assert high is not None
    assert low < high
    assert len(set(moved("argo-rollout"))) == 1
