"""What a policy pays for, each in seconds of one consumer, and what one change costs by these prices."""

from dataclasses import dataclass

from planner.simulation.outcome import CandidateOutcome


@dataclass(frozen=True, slots=True)
class Prices:
    """A moved queue, a message that comes twice, a second in which nobody consumes, and a late minute.

    A consumer that is still missing, or is not yet gone, costs one second each second; one of a group that stands
    still as a whole costs ``standstill_s``. ``late_minute_s`` is for one minute in which some message waits too long.
    ``consumer_hour`` is what one consumer costs an hour, in the policy's money; it weighs nothing, as all else
    is in seconds of one consumer, and ``None`` where it is not stated. Raises ``ValueError`` for a price below 0.
    """

    moved_queue_s: float = 30.0
    duplicate_s: float = 1.0
    standstill_s: float = 10.0
    late_minute_s: float = 3600.0
    consumer_hour: float | None = None

    def __post_init__(self) -> None:
        if min(self.moved_queue_s, self.duplicate_s, self.standstill_s, self.late_minute_s) < 0:
            raise ValueError(
                f"prices of 0 or more, not {self.moved_queue_s}, {self.duplicate_s}, {self.standstill_s} and "
                f"{self.late_minute_s}"
            )
        if self.consumer_hour is not None and self.consumer_hour < 0:
            raise ValueError(f"a price of 0 or more for an hour of one consumer, not {self.consumer_hour}")


DEFAULT_PRICES = Prices()


def change_price(outcome: CandidateOutcome, current: int, prices: Prices) -> float:
    """Return what going from ``current`` consumers to the outcome costs, in seconds of one consumer.

    Medians of the forecast of exactly that change. Where nobody can say which queues move, all do: the price is then
    the largest that it can be. Pauses and duplicates that are not known cost nothing, see ``is_price_complete``.
    """
    if outcome.is_current:
        return 0.0
    fewest, most = outcome.moved_fewest, outcome.moved_most
    moved = len(outcome.owners) if fewest is None or most is None else (fewest + most) / 2
    price = moved * prices.moved_queue_s
    transition = outcome.transition
    if transition is not None:
        price += transition.duplicates.p50 * prices.duplicate_s
        if transition.stall_s is not None:
            price += transition.stall_s.p50 * min(current, outcome.count) * prices.standstill_s
        if transition.settle_s is not None:
            price += transition.settle_s.p50 * abs(outcome.count - current)
    return price


def is_price_complete(outcome: CandidateOutcome) -> bool:
    """Return whether moved queues, duplicates and times of the change are all known."""
    return outcome.transition is not None and outcome.moved_most is not None
