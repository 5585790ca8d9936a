"""What is true of a cell, and so which answers are right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from tests.matrix.cells import BLOCKED_QUEUE, HOT_QUEUE, NO_CAUSE, SLOW_MEMBER, Cell
from tests.matrix.policies import MOST

BOUND = 0.8
"""``maxUtilisation`` where a policy does not say otherwise."""

WITHIN = 0.1
"""A capacity that is learned this close is right, and targets that follow from any this close are."""

KEEPS_UP = 0.95
"""A group that consumes less of what comes in falls behind."""

GONE_S = 600.0
"""In how long a backlog is to be gone for somebody who states no objective."""

TOO_FEW = "too-few-consumers"
NAMES: Mapping[str, frozenset[str]] = {
    SLOW_MEMBER: frozenset({"slow-member"}),
    HOT_QUEUE: frozenset({"hot-queue"}),
    BLOCKED_QUEUE: frozenset({"stalled", "blocked-queue"}),
}
"""By cause: the codes of which one must be among the doctor's findings."""


@dataclass(frozen=True)
class Truth:
    """``capacity``: messages per second of one member. ``targets``: right counts, ``None`` where none is asked for.

    ``is_beyond_any_count``: even the best count's busiest member is used above ``BOUND``, or may be.
    ``keeps_up``: all that came in was consumed. ``causes``: codes of which the doctor must give one; none for a healthy
    group.
    """

    capacity: float
    keeps_up: bool
    targets: frozenset[int] | None
    causes: frozenset[str]
    is_beyond_any_count: bool = False


def truth(cell: Cell, rates: Mapping[str, float]) -> Truth:
    """Return it from the cell, and from what each client really did in messages per second.

    Members that always had work did what they can; of the others the service time tells it. On a busy machine a commit
    after each message takes long, so that a group may fall behind whose members' service time alone would do.
    """
    keeps_up = cell.load < 1 and sum(rates.values()) >= KEEPS_UP * cell.rate
    # Who pops takes from whichever queue has messages: none is hot.
    cause = NO_CAUSE if cell.is_shared and cell.cause == HOT_QUEUE else cell.cause
    is_busy = not keeps_up and cause == NO_CAUSE and len(rates) == cell.members
    capacity = fmean(rates.values()) if is_busy else cell.capacity
    causes = NAMES.get(cause, frozenset() if keeps_up else frozenset({TOO_FEW}))
    is_beyond = min(_usage(cell, capacity * (1 - WITHIN), cell.rate, MOST).values()) > BOUND
    return Truth(capacity, keeps_up, _right_targets(cell, capacity), causes, is_beyond)


def _right_targets(cell: Cell, capacity: float) -> frozenset[int] | None:
    """More members heal no slow one and no blocked queue, and fewer harm; of a hot queue opinions differ."""
    if cell.cause == HOT_QUEUE and not cell.is_shared:
        return None
    return frozenset({cell.members}) if cell.cause in (SLOW_MEMBER, BLOCKED_QUEUE) else right_targets(cell, capacity)


def right_targets(cell: Cell, capacity: float, most: int = MOST) -> frozenset[int]:
    """Return the count up to ``most`` that follows from each capacity ``WITHIN`` of the truth, and a rate a little up.

    The smallest whose busiest member is used to ``BOUND`` at most; where none is, the smallest of those that relieve
    the busiest member most.
    """
    factors = (1 - WITHIN, 1.0, 1 + WITHIN)
    return frozenset(
        _target(_usage(cell, capacity * factor, cell.rate * more, most)) for factor in factors for more in (1.0, 1.05)
    )


def targets_in_time(cell: Cell, known: Truth, most: int, lag: int | None) -> frozenset[int]:
    """Return the counts up to ``most`` that are right for an objective by which a backlog of ``lag`` is soon gone.

    Those by utilisation alone, and larger ones as long as the next smaller useful count may be too slow for the
    backlog: what the time is worth is the planner's to weigh.
    """
    by_use = right_targets(cell, known.capacity, most)
    usage = _usage(cell, known.capacity * (1 - WITHIN), cell.rate * 1.05, most)
    is_slow = {
        count: used >= 1.0 or _drain_s(cell, known, count, used, lag or 0) > GONE_S for count, used in usage.items()
    }
    useful = [count for count in usage if count == 1 or round(usage[count], 6) < round(usage[count - 1], 6)]
    larger = {count for before, count in pairwise(useful) if is_slow[before] and count > min(by_use)}
    return by_use | larger


def _drain_s(cell: Cell, known: Truth, count: int, used: float, lag: int) -> float:
    """Return how long the busiest of ``count`` members takes for its part of the backlog, which lies as arrivals do."""
    share = 1 / count if cell.is_shared else _busiest(cell.shares, count)
    return lag * share / (known.capacity * (1 - WITHIN) * (1 - used))


def _usage(cell: Cell, capacity: float, rate: float, most: int) -> dict[int, float]:
    """Return what the busiest member is used at each count."""
    counts = range(1, (most if cell.is_shared else min(most, cell.queues)) + 1)
    return {
        count: (1 / count if cell.is_shared else _busiest(cell.shares, count)) * rate / capacity for count in counts
    }


def _target(usage: Mapping[int, float]) -> int:
    fitting = [count for count in usage if usage[count] <= BOUND]
    return fitting[0] if fitting else min(usage, key=lambda count: (round(usage[count], 6), count))


def _busiest(shares: Sequence[float], count: int) -> float:
    """Return the share of the arrivals that the busiest of ``count`` members gets, each a run of queues."""
    whole, rest = divmod(len(shares), count)
    sizes = [whole + (number < rest) for number in range(count)]
    return max(sum(shares[sum(sizes[:number]) : sum(sizes[: number + 1])]) for number in range(count))
