"""What is true of a cell, and so which answers are right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tests.matrix.cells import BLOCKED_QUEUE, HOT_QUEUE, NO_CAUSE, SLOW_MEMBER, Cell
from tests.matrix.policies import MOST

BOUND = 0.8
"""``maxUtilisation`` where a policy does not say otherwise."""

WITHIN = 0.1
"""A capacity that is learned this close is right, and targets that follow from any this close are."""

KEEPS_UP = 0.95
"""A group that consumes less of what comes in falls behind."""

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

    ``keeps_up``: all that came in was consumed. ``causes``: codes of which the doctor must give one; none for a healthy
    group.
    """

    capacity: float
    keeps_up: bool
    targets: frozenset[int] | None
    causes: frozenset[str]


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
    return Truth(capacity, keeps_up, _right_targets(cell, capacity), causes)


def _right_targets(cell: Cell, capacity: float) -> frozenset[int] | None:
    """More members heal no slow one and no blocked queue, and fewer harm; of a hot queue opinions differ."""
    if cell.cause == HOT_QUEUE and not cell.is_shared:
        return None
    return frozenset({cell.members}) if cell.cause in (SLOW_MEMBER, BLOCKED_QUEUE) else right_targets(cell, capacity)


def right_targets(cell: Cell, capacity: float) -> frozenset[int]:
    """Return the count that follows from each capacity ``WITHIN`` of the truth, and from a rate a little higher.

    The smallest whose busiest member is used to ``BOUND`` at most; where none is, the smallest of those that relieve
    the busiest member most.
    """
    factors = (1 - WITHIN, 1.0, 1 + WITHIN)
    return frozenset(_target(cell, capacity * factor, cell.rate * more) for factor in factors for more in (1.0, 1.05))


def _target(cell: Cell, capacity: float, rate: float) -> int:
    counts = range(1, (MOST if cell.is_shared else min(MOST, cell.queues)) + 1)
    usage = {
        count: (1 / count if cell.is_shared else _busiest(cell.shares, count)) * rate / capacity for count in counts
    }
    fitting = [count for count in counts if usage[count] <= BOUND]
    return fitting[0] if fitting else min(counts, key=lambda count: (round(usage[count], 6), count))


def _busiest(shares: Sequence[float], count: int) -> float:
    """Return the share of the arrivals that the busiest of ``count`` members gets, each a run of queues."""
    whole, rest = divmod(len(shares), count)
    sizes = [whole + (number < rest) for number in range(count)]
    return max(sum(shares[sum(sizes[:number]) : sum(sizes[: number + 1])]) for number in range(count))
