"""A long tail shown as one: what usually comes, and what comes in a few cases far later."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

LARGEST_SHARE, LEAST_SHARE = 0.2, 0.01
"""A tail is no more than a fifth of the trials, and no less than one in a hundred."""
LEAST_GAP_S, LEAST_FACTOR = 5.0, 2.0
"""Between what usually comes and the tail lie so many seconds, and the tail begins so many times later."""


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """Trials that lie far above all others: ``is_in`` by trial. ``usual`` and ``late`` are the seconds of the others
    and of them.
    """

    is_in: Booleans
    usual: Floats
    late: Floats

    @property
    def share(self) -> float:
        """Return how many of the known trials are in it."""
        return len(self.late) / (len(self.usual) + len(self.late))

    def document(self, cause: str | None) -> dict[str, object]:
        """Return the tail as an answer has it: seconds of either part, quantiles of the whole, and its cause."""
        whole = np.concatenate([self.usual, self.late])
        return {
            "share": round(self.share, 4),
            "usual": _quantiles(self.usual, p05=0.05, p95=0.95),
            "late": _quantiles(self.late, p05=0.05, p95=0.95),
            **_quantiles(whole, p50=0.5, p90=0.9, p97=0.97),
            **({} if cause is None else {"cause": cause}),
        }


def find_tail(values: Floats) -> Tail | None:
    """Return the tail of one figure's trials (seconds, NaN where unknown); ``None`` where there is none."""
    known = np.sort(values[~np.isnan(values)])
    least, most = int(np.ceil(len(known) * (1 - LARGEST_SHARE))), int(len(known) * (1 - LEAST_SHARE))
    if least < 1 or most < least:
        return None
    gaps = known[least : most + 1] - known[least - 1 : most]
    begin = least + int(gaps.argmax())
    below, above = known[begin - 1], known[begin]
    if above - below < LEAST_GAP_S or above < LEAST_FACTOR * below:
        return None
    return Tail(values >= above, known[:begin], known[begin:])


def describe_tails(figures: Mapping[str, Floats | None], parts: Mapping[str, Floats]) -> dict[str, Any]:
    """Return ``tails`` of an answer: by name those figures that have one, with its cause among ``parts``, if any.

    Both are seconds by trial. Empty where nothing has a tail.
    """
    tails = {name: tail for name, values in figures.items() if values is not None and (tail := find_tail(values))}
    described = {name: tail.document(find_cause(tail, parts)) for name, tail in tails.items()}
    return {"tails": described} if described else {}


def find_cause(tail: Tail, parts: Mapping[str, Floats]) -> str | None:
    """Return the part that is larger in the tail's trials than in the others by most; ``None`` where none is larger.

    ``parts`` are seconds by trial.
    """
    excess = {name: float(seconds[tail.is_in].mean() - seconds[~tail.is_in].mean()) for name, seconds in parts.items()}
    name = max(excess, key=lambda name: excess[name], default=None)
    return name if name is not None and excess[name] >= LEAST_GAP_S / 2 else None


def _quantiles(values: Floats, **levels: float) -> dict[str, float]:
    return {name: round(float(np.quantile(values, level)), 4) for name, level in levels.items()}
