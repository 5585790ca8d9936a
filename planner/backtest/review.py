"""A group's past beside what the planner and a tuned KEDA would have done with the same load."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.backtest.play import Run
from planner.backtest.recorded import RecordedGroup
from planner.text.words import counted, number, queue_noun, rate

REVIEWED = ("planner", "keda")


@dataclass(frozen=True, slots=True)
class Review:
    """One group's past and what two policies would have made of its load; costs in consumer-hours."""

    recorded: RecordedGroup
    planner: Run
    keda: Run

    @property
    def past_cost_h(self) -> float:
        """What the past cost as it was."""
        return self.recorded.past.cost_h(self.recorded.scenario.prices)

    def saved_h(self, run: Run) -> float:
        """Return what a policy would have saved; below 0 where it would have cost more."""
        return self.past_cost_h - run.cost_h(self.recorded.scenario.prices)

    @property
    def risks(self) -> tuple[str, ...]:
        """What is at risk in the group, as sentences without full stops: late messages, and queues too hot for one."""
        late, left = self.recorded.past.late_minutes, self.planner.totals.late_minutes
        sentences = []
        if late or left:
            sentences.append(_late_words(late, left))
        scenario = self.recorded.scenario
        busiest = scenario.messages.max(axis=0) / scenario.interval_s
        hot = int(busiest.argmax())
        if busiest[hot] > scenario.capacity:
            noun = queue_noun(scenario.system)
            sentences.append(
                f"{noun} {scenario.queues[hot]} alone got up to {rate(float(busiest[hot]))}, more than a consumer "
                "does: no number of consumers helps, more keys or a faster consumer do"
            )
        return tuple(sentences)


def _late_words(late: int, left: int) -> str:
    if not late:
        return f"not late as it was, but in {counted(left, 'minute')} under the planner"
    return f"late in {counted(late, 'minute')} as it was, in {number(left) if left else 'none'} under the planner"


def most_saved_first(reviews: Sequence[Review]) -> list[Review]:
    """Return the reviews by what the planner saves, the largest first, equal ones by name."""
    return sorted(reviews, key=lambda it: (-it.saved_h(it.planner), it.recorded.group))
