"""Bisection of many rows against NumPy's of one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.forecast.common.bisection import first_after, first_from

NUMBERS = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0, 2.5, np.inf])


@given(
    st.integers(0, 9).flatmap(lambda width: st.lists(st.lists(NUMBERS, min_size=width, max_size=width), min_size=1)),
    st.data(),
)
def test_every_limit_falls_where_numpy_puts_it(rows: list[list[float]], data: st.DataObject) -> None:
    times = np.sort(np.array(rows, dtype=float).reshape(len(rows), len(rows[0])), axis=1)
    asked = data.draw(st.lists(st.tuples(st.integers(0, len(rows) - 1), NUMBERS), min_size=1))
    row, limits = np.array([one for one, _ in asked], dtype=np.intp), np.array([limit for _, limit in asked])
    wanted = [
        (np.searchsorted(times[one], limit, "right"), np.searchsorted(times[one], limit, "left"))
        for one, limit in asked
    ]
    assert first_after(times, row, limits).tolist() == [after for after, _ in wanted]
    assert first_from(times, row, limits).tolist() == [found for _, found in wanted]
