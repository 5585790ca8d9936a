"""The horizon, compiled: the same bills to the last bit, for those who decide thousands of times."""

from collections.abc import Sequence

import numpy as np

from planner.compiled import kernel
from planner.decision.expectation import Expectation, Floats
from planner.decision.horizon import Model


class CompiledModel(Model):
    """``Model`` with machine code for its steps backwards. Costs in parts are asked for once a run and stay NumPy's."""

    def earlier(self, value: Floats, loads: Floats, seconds: Sequence[float], expectation: Expectation) -> Floats:
        """Return the value one period earlier: shape (parts, paths, counts, levels)."""
        if len(value) > 1:
            return super().earlier(value, loads, seconds, expectation)
        by_count = loads[:, :, None, None]
        step: Floats = kernel.earlier(
            np.ascontiguousarray(value[0]),
            np.ascontiguousarray((by_count * self._arriving - self._drain)[..., 0]),
            np.ascontiguousarray(self._limit(by_count, slice(None))[..., 0]),
            np.array(seconds),
            min(self._delay, sum(seconds)),
            np.array(expectation.directions).reshape(-1, len(loads)),
            self._counts.ravel(),
            np.array(self._changes),
            self._late_price,
            self._levels,
        )
        return step[None]
