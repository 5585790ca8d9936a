"""What was to be expected at a step, by what was known there."""

import numpy as np
import pytest

from planner.decision.expectation import RECENT, Expectation, Floats, expectations_after


def costs(*of_paths: float) -> np.ndarray:
    return np.array(of_paths)[:, None, None]


def expectation_after(known: Floats) -> Expectation:
    return expectations_after(known, [known.shape[1]])[0]


def test_loads_that_tell_nothing_leave_the_mean() -> None:
    alike = expectation_after(np.full((4, 3), 5.0))
    assert alike.of(costs(1.0, 2.0, 3.0, 10.0)).ravel() == pytest.approx([4.0] * 4)
    # Nor do loads that are equal but for the rounding of a sum.
    rounded = expectation_after(np.full((4, 1), 5.0) + np.array([[0.0], [1e-13], [3e-13], [2e-13]]))
    assert rounded.directions == ()


def test_costs_that_follow_the_load_are_expected() -> None:
    known = np.array([[1.0], [2.0], [3.0], [100.0]])
    assert expectation_after(known).of(costs(10.0, 20.0, 30.0, 40.0)).ravel() == pytest.approx([10.0, 20.0, 30.0, 40.0])
    # By rank, not by size; and what does not follow the load is nobody's to know.
    assert expectation_after(known).of(costs(0.0, 9.0, 9.0, 0.0)).ravel() == pytest.approx([4.5] * 4)


def test_a_load_of_before_is_known_beside_the_last_one() -> None:
    before, last = [50.0, 90.0, 90.0, 50.0], [1.0, 2.0, 3.0, 4.0]
    cost = costs(0.0, 20.0, 30.0, 10.0)
    for times in (1, RECENT - 1):
        known = np.column_stack([before, *[last] * times])
        assert expectation_after(known).of(cost).ravel() == pytest.approx(cost.ravel())
    long_ago = expectation_after(np.column_stack([before, *[last] * RECENT]))
    assert long_ago.of(cost).ravel() == pytest.approx([9.0, 13.0, 17.0, 21.0])


def test_what_is_expected_is_right_in_the_mean() -> None:
    random = np.random.default_rng(3)
    expectation = expectation_after(random.uniform(1.0, 9.0, (24, 12)))
    values = random.exponential(100.0, (24, 5, 10))
    assert expectation.of(values).mean(axis=0) == pytest.approx(values.mean(axis=0))
    for left, right in [(0, 1), (0, 0), (1, 1)]:
        product = (expectation.directions[left] * expectation.directions[right]).sum()
        assert product == pytest.approx(float(left == right))


def test_each_step_knows_the_loads_before_it_alone() -> None:
    loads = np.random.default_rng(4).exponential(3.0, (24, 30))
    loads[:, :12] = 2.0
    begins = [1, 12, 13, 20, 30]
    for begin, expectation in zip(begins, expectations_after(loads, begins), strict=True):
        alone = expectation_after(loads[:, :begin])
        assert [it.tobytes() for it in expectation.directions] == [it.tobytes() for it in alone.directions]
    assert expectations_after(loads, []) == []
