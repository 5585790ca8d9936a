"""The horizon's steps in loops for a compiler: the arithmetic of ``planner.decision.horizon``, in its order.

Every sum and product is taken in NumPy's order, so that values are the same to the last bit: two machines of one fleet
choose the same count, whichever of them compiles. Arrays are contiguous; paths, counts and levels are their axes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from planner.decision.expectation import Floats
from planner.decision.horizon import UNREACHABLE

LINE, TABLE, CUBE = "float64[::1]", "float64[:,::1]", "float64[:,:,::1]"


def _compile(result: str, *arguments: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function for these types as it is imported; its machine code is kept where that can be written."""

    def compile_it(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = f"{result}({', '.join(arguments)})"
        try:
            return njit(signature, cache=True, error_model="numpy")(function)
        except RuntimeError:  # neither the package's folder nor the user's can be written, as in a read-only container
            return njit(signature, error_model="numpy")(function)

    return compile_it


@_compile("void", LINE, LINE, LINE, LINE)
def interpolate(values: Floats, levels: Floats, backlogs: Floats, at: Floats) -> None:
    """Write the values at ascending backlogs to ``at``; beyond the last level the line goes on."""
    index, last = 0, len(levels) - 2
    for row in range(len(backlogs)):
        while index < last and levels[index + 1] <= backlogs[row]:
            index += 1
        weight = (backlogs[row] - levels[index]) / (levels[index + 1] - levels[index])
        at[row] = values[index] + weight * (values[index + 1] - values[index])


@_compile("void", LINE, LINE, "float64", "float64", "float64", "float64")
def grow(backlogs: Floats, late: Floats, pace: float, limit: float, seconds: float, late_price: float) -> None:
    """Let backlogs grow at ``pace`` for so long, and add the price of what is late meanwhile to ``late``."""
    growth = pace * seconds
    size, price = abs(growth) + 1e-6, seconds * late_price
    for row in range(len(backlogs)):
        after = backlogs[row] + growth
        late_share = (max(backlogs[row], after) - limit) / size
        late[row] += min(max(late_share, 0.0), 1.0) * price
        backlogs[row] = max(after, 0.0)


@_compile(CUBE, CUBE, TABLE)
def expected_of(values: Floats, directions: Floats) -> Floats:
    """Return what was to be expected of each path's values: ``Expectation.of``."""
    paths, cells = len(values), values[0].size
    flat, expected = values.reshape(paths, cells), np.empty((paths, cells))
    total = flat[0].copy()
    for path in range(1, paths):
        total += flat[path]
    for path in range(paths):
        expected[path] = total / paths
    for direction in directions:
        total = direction[0] * flat[0]
        for path in range(1, paths):
            total += direction[path] * flat[path]
        for path in range(paths):
            expected[path] += direction[path] * total
    return expected.reshape(values.shape)


@_compile("void", CUBE, CUBE, LINE, "int64", "int64", CUBE, CUBE)
def take_cheapest(
    costs: Floats, expected: Floats, changes: Floats, first: int, step: int, taken: Floats, its_expected: Floats
) -> None:
    """Write what that count costs which is cheapest by expectation, its change included, of those passed before each.

    Counts are passed from the index ``first`` on by ``step``. None is passed before the first one, whose expected cost
    is ``UNREACHABLE``.
    """
    paths, counts, levels = costs.shape
    for path in range(paths):
        least, cheapest = np.full(levels, UNREACHABLE), np.full(levels, first)
        for passed in range(counts):
            count = first + step * passed
            for level in range(levels):
                best = cheapest[level]
                taken[path, count, level] = costs[path, best, level] + changes[best]
                its_expected[path, count, level] = least[level]
                own = expected[path, count, level] + changes[count]
                if own <= least[level] or not passed:
                    least[level], cheapest[level] = own, count


@_compile("void", CUBE, CUBE, CUBE, CUBE, LINE, "float64", LINE, "float64", LINE)
def run_period(
    stay: Floats,
    rest: Floats,
    paces: Floats,
    limits: Floats,
    seconds: Floats,
    delay: float,
    counts: Floats,
    late_price: float,
    levels: Floats,
) -> None:
    """Take the values behind a period to its begin: of a count that runs for all of it, and for all but ``delay``."""
    paths, bins, _ = paces.shape
    behind, backlogs, late = np.empty(len(levels)), np.empty(len(levels)), np.empty(len(levels))
    for path in range(paths):
        for count in range(len(counts)):
            end = seconds.sum()
            for index in range(bins - 1, -1, -1):
                begin = end - seconds[index]
                behind[:] = stay[path, count]
                for is_rest in range(2):
                    if is_rest and not begin <= delay < end:
                        continue
                    span = end - delay if is_rest else seconds[index]
                    values = rest[path, count] if is_rest else stay[path, count]
                    backlogs[:], late[:] = levels, 0.0
                    grow(backlogs, late, paces[path, index, count], limits[path, index, count], span, late_price)
                    interpolate(behind, levels, backlogs, values)
                    for level in range(len(levels)):
                        values[level] += counts[count] * span + late[level]
                end = begin


@_compile("void", CUBE, CUBE, CUBE, CUBE, LINE, "float64", LINE, "float64", LINE)
def wait_for_more(
    higher: Floats,
    rise: Floats,
    paces: Floats,
    limits: Floats,
    seconds: Floats,
    delay: float,
    counts: Floats,
    late_price: float,
    levels: Floats,
) -> None:
    """Write to ``rise`` what it costs each count to run on for ``delay``, with the value of a higher one behind it."""
    backlogs, late = np.empty(len(levels)), np.empty(len(levels))
    for path in range(len(paces)):
        for count in range(len(counts) - 1):
            backlogs[:], late[:], begin = levels, 0.0, 0.0
            for index in range(len(seconds)):
                if begin >= delay:
                    break
                span = min(seconds[index], delay - begin)
                grow(backlogs, late, paces[path, index, count], limits[path, index, count], span, late_price)
                begin += seconds[index]
            behind = rise[path, count]
            interpolate(higher[path, count], levels, backlogs, behind)
            for level in range(len(levels)):
                behind[level] += counts[count] * delay + late[level]
        rise[path, len(counts) - 1] = UNREACHABLE


@_compile(CUBE, CUBE, CUBE, CUBE, LINE, "float64", TABLE, LINE, LINE, "float64", LINE)
def earlier(
    value: Floats,
    paces: Floats,
    limits: Floats,
    seconds: Floats,
    delay: float,
    directions: Floats,
    counts: Floats,
    changes: Floats,
    late_price: float,
    levels: Floats,
) -> Floats:
    """Return the value one period earlier, shape (paths, counts, levels): ``Model.earlier``.

    ``paces`` are what backlogs grow by in a second, ``limits`` the backlogs from which messages are late; shape (paths,
    bins, counts).
    """
    stay, rest = value.copy(), value.copy()
    run_period(stay, rest, paces, limits, seconds, delay, counts, late_price, levels)
    fall, higher, rise = np.empty_like(value), np.empty_like(value), np.empty_like(value)
    expected_stay, expected_fall, of_none = expected_of(stay, directions), np.empty_like(value), np.empty_like(value)
    take_cheapest(stay, expected_stay, changes, 0, 1, fall, expected_fall)
    take_cheapest(rest, expected_of(rest, directions), changes, len(counts) - 1, -1, higher, of_none)
    wait_for_more(higher, rise, paces, limits, seconds, delay, counts, late_price, levels)
    expected_rise = expected_of(rise, directions)
    for index in np.ndindex(value.shape):
        if expected_rise[index] < min(expected_fall[index], expected_stay[index]):
            stay[index] = rise[index]
        elif expected_fall[index] < expected_stay[index]:
            stay[index] = fall[index]
    return stay
