"""One decided case: the input of every section of the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from planner.advice.answer import Advice
from planner.advice.next_command import command_after_record
from planner.model.queues import Queue
from planner.model.snapshot import GroupSnapshot
from planner.report.consumers import Marks
from planner.rollout.next_command import approve_command
from planner.rollout.plan import DecisionRecord, RolloutPlan
from planner.simulation.outcome import CandidateOutcome
from planner.verification.track import TrackRecord


@dataclass(frozen=True)
class Case:
    """Snapshot, outcomes, decision and plan of one group; ``max_utilisation`` is the policy's bound where known.

    ``plan_file`` is how a reader's next command names the plan, ``track`` what the group's earlier
    forecasts came to, ``None`` where none were read. ``advice`` is the answer of ``planner advise``, where the case
    comes from there.
    """

    snapshot: GroupSnapshot
    outcomes: Sequence[CandidateOutcome]
    record: DecisionRecord
    plan: RolloutPlan | None
    max_utilisation: float | None = None
    track: TrackRecord | None = None
    plan_file: str = "plan.yaml"
    advice: Advice | None = None

    @property
    def is_hold(self) -> bool:
        """True when nothing is to be changed."""
        return self.record.decision.is_hold

    @property
    def next_command(self) -> str | None:
        """The reader's next command, the same as on the terminal; ``None`` for a change whose plan is not at hand."""
        if self.advice is not None:
            return str(self.advice.next)
        if self.plan is not None:
            return approve_command(self.plan, self.plan_file)
        return str(command_after_record(self.record)) if self.is_hold else None

    @cached_property
    def own_strategy(self) -> str | None:
        """The strategy that the decision is about."""
        return self.record.decision.strategy

    @cached_property
    def chosen(self) -> CandidateOutcome | None:
        """The outcome of the decision's count under the group's own strategy, where it was simulated."""
        return self._outcome(self.record.decision.target)

    @cached_property
    def staying(self) -> CandidateOutcome | None:
        """The outcome of changing nothing, where it was simulated."""
        return self._outcome(self.record.decision.current)

    @cached_property
    def own_outcomes(self) -> tuple[CandidateOutcome, ...]:
        """The outcomes under the group's own strategy, by count."""
        return tuple(sorted((o for o in self.outcomes if o.strategy == self.own_strategy), key=lambda o: o.count))

    @cached_property
    def owners_now(self) -> dict[Queue, str | None]:
        """The owner of each data queue as the members report it."""
        return {state.queue: state.owner for state in self.snapshot.data_queues}

    @cached_property
    def owners_then(self) -> dict[Queue, str | None]:
        """The owner of each data queue after the decision; as now for a hold."""
        if self.is_hold or self.chosen is None:
            return self.owners_now
        return {owned.queue: owned.owner for owned in self.chosen.owners}

    @cached_property
    def moved(self) -> frozenset[Queue]:
        """The queues that change owner in the case that is shown."""
        then = self.owners_then
        return frozenset(queue for queue, owner in self.owners_now.items() if then.get(queue) != owner)

    @cached_property
    def marks(self) -> Marks:
        """Codes and colours, the same in every section."""
        after = [load.client for load in self.chosen.loads] if self.chosen else []
        widest = max(self.own_outcomes, key=lambda o: o.count, default=None)
        return Marks(self.snapshot.clients, [*after, *(load.client for load in widest.loads)] if widest else after)

    def _outcome(self, count: int) -> CandidateOutcome | None:
        return next((o for o in self.outcomes if o.count == count and o.strategy == self.own_strategy), None)
