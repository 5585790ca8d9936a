"""All strategies side by side on one group: now, at the next useful counts, without one member, without one broker.

Each strategy is taken to have run all along: what its next change moves and costs is counted from its own allocation
of the present members, and what the switch to it would move, once, stands apart. Where ids decide, those of all members
are drawn (``GroupModel.drawn_anew``): what the present ones come to is gone with the next rollout.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.errors import BadInputError, PlannerError
from planner.forecast.common.changes import CRASH
from planner.model.snapshot import GroupSnapshot
from planner.simulation.candidates import candidate_counts, shares_messages, simulate_candidate
from planner.simulation.group_model import group_model
from planner.simulation.lost_broker import lose_broker, loss_transition
from planner.simulation.outcome import CandidateOutcome, DrawnAnew, Transition
from planner.simulation.transition import TRIALS, transition_of, with_transition

_Cost = Callable[[int, str], tuple[Transition | None, str | None]]
"""From count and digest to what coming there costs, or why that is not known."""

AS_EVEN = 1.1
"""A strategy with so much more load on its busiest consumer counts as one as even; with so many more moves, as calm.

Loads are those of one window, and of sticky assignors one answer of several: a smaller difference is worth no switch.
"""


_COUNTS = ("more", "fewer", "lost")
"""Names of the situations with another count; those without a broker go by the broker's name."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A group that has settled in one situation, and what coming there from the present one means.

    ``busiest`` is the busiest consumer's messages per second, or its queues where no rate is known. ``mean_moved`` is
    the average over all ids, or the middle of the exact range. ``cost`` is ``None`` where it is not known or not asked
    for, ``why`` then says what is missing. ``broker`` names the one that is lost.
    """

    count: int
    busiest: float
    utilisation: float | None
    largest_share: int
    moved_fewest: int | None
    moved_most: int | None
    mean_moved: float | None
    cost: Transition | None = None
    why: str | None = None
    broker: str | None = None


@dataclass(frozen=True, slots=True)
class StrategyFigures:
    """What one strategy means for the group.

    ``more`` and ``fewer`` are the group at the next useful counts of pods, ``lost`` with one pod less, ``broken``
    without the broker whose loss leaves the busiest consumer most. They are ``None`` where there is no such count or
    broker, or where it cannot be simulated: ``unknown`` has a sentence for each of the latter. ``switch_moves`` is how
    many queues change owner when the group is switched to the strategy, with its present ids. ``are_ids_drawn`` says
    that figures are those of ids of which the policy's percentile are no worse.
    """

    strategy: str
    options: Mapping[str, Any]
    is_current: bool
    switch_moves: int
    are_ids_drawn: bool
    now: Situation
    more: Situation | None
    fewer: Situation | None
    lost: Situation | None
    broken: Situation | None
    unknown: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The strategy's name, with the virtual nodes where they are not the default."""
        nodes = self.options.get("virtual_nodes")
        return self.strategy if nodes is None else f"{self.strategy}, {nodes} virtual nodes"

    @property
    def situations(self) -> tuple[Situation | None, ...]:
        """All that a strategy is judged by, in the same order for each."""
        return (self.now, self.more, self.fewer, self.lost, self.broken)

    @property
    def moves(self) -> float:
        """Queues that the next useful count above and one lost pod move together; infinite where unknown."""
        moved = [situation.mean_moved for situation in (self.more, self.lost) if situation is not None]
        return sum(float("inf") if each is None else each for each in moved)


def compare_strategies(
    snapshot: GroupSnapshot, digest: str | None = None, trials: int = TRIALS
) -> tuple[StrategyFigures, ...]:
    """Return the figures of every strategy that can be simulated on the group, its own first.

    With the snapshot's ``digest`` also what each change costs. Strategies whose parameters nobody states are left out:
    ``left_out`` names them. Raises ``BadInputError`` for members that share messages.
    """
    if shares_messages(snapshot):
        raise BadInputError(
            f"group {snapshot.group}: its members share the messages of every queue, so that no strategy gives a queue "
            "to one of them: leave out --strategies to compare counts"
        )
    rows = [
        _Study(snapshot, name, options, digest, trials).figures()
        for name, options in _choices(snapshot)
        if _runs(snapshot, name, options)
    ]
    return tuple(rows)


def _choices(snapshot: GroupSnapshot) -> Iterator[tuple[str, Mapping[str, Any]]]:
    own = snapshot.strategy
    if own is not None:
        yield own, snapshot.strategy_options
    for name, options in group_model(snapshot).strategies():
        if name != own or options:
            yield name, options


def left_out(snapshot: GroupSnapshot, rows: Sequence[StrategyFigures]) -> tuple[str, ...]:
    """Return the names of the strategies that need parameters which nobody states."""
    shown = {row.strategy for row in rows}
    return tuple(name for name, options in _choices(snapshot) if name not in shown and not options)


def next_counts(snapshot: GroupSnapshot) -> tuple[int | None, int | None]:
    """Return the next useful counts of pods above and below the present one, by the group's own strategy."""
    most = max(-(-len(snapshot.data_queues) // (snapshot.members_per_pod or 1)), snapshot.count)
    counts = candidate_counts(snapshot, 1, most)
    return (
        min((count for count in counts if count > snapshot.count), default=None),
        max((count for count in counts if count < snapshot.count), default=None),
    )


def _as_run_by(snapshot: GroupSnapshot, name: str, options: Mapping[str, Any]) -> GroupSnapshot:
    """Return the group as it is set up under that strategy, owners not yet changed."""
    return replace(snapshot, strategy=name, strategy_options=dict(options), shared_queues=0)


def _runs(snapshot: GroupSnapshot, name: str, options: Mapping[str, Any]) -> bool:
    """Return whether the strategy can answer for the present members."""
    return _try(_as_run_by(snapshot, name, options), snapshot.count) is not None


def _try(snapshot: GroupSnapshot, count: int) -> CandidateOutcome | None:
    try:
        return simulate_candidate(snapshot, count, snapshot.strategy or "")
    except BadInputError:
        return None


class _Study:
    """One strategy on one group; ``switched`` is the group as if that strategy had run all along."""

    def __init__(
        self, snapshot: GroupSnapshot, name: str, options: Mapping[str, Any], digest: str | None, trials: int
    ) -> None:
        self._snapshot, self._options, self._digest, self._trials = snapshot, options, digest, trials
        self._present = simulate_candidate(_as_run_by(snapshot, name, options), snapshot.count, name)
        owners = {owned.queue: owned.owner for owned in self._present.owners}
        states = tuple(replace(state, owner=owners.get(state.queue, state.owner)) for state in snapshot.queues)
        self._switched = replace(_as_run_by(snapshot, name, options), queues=states)
        self._unknown: list[str] = []

    def figures(self) -> StrategyFigures:
        """Return the strategy's row."""
        above, below = next_counts(self._snapshot)
        counts = dict(zip(_COUNTS, (above, below, self._snapshot.count - 1 or None), strict=True))
        futures = {name: (self._switched, count) for name, count in counts.items() if count is not None}
        losses = {broker: (lost, self._snapshot.count) for broker, lost in self._losses()}
        outcomes = {"": self._present, **self._outcomes(futures), **self._outcomes(losses)}
        every = {"": (self._switched, self._snapshot.count), **futures, **losses}
        drawn = self._drawn({name: every[name] for name in outcomes})
        situations = {name: self._situation(outcome, drawn.get(name)) for name, outcome in outcomes.items()}
        more, fewer, lost = (situations.get(name) for name in counts)
        return StrategyFigures(
            strategy=self._present.strategy,
            options=self._options,
            is_current=self._is_current,
            switch_moves=self._switch_moves(),
            are_ids_drawn=bool(drawn),
            now=situations[""],
            more=more and self._with_cost(more, self._scaled),
            fewer=fewer and self._with_cost(fewer, self._scaled),
            lost=lost and self._with_cost(lost, self._crashed),
            broken=self._worst([replace(situations[name], broker=name) for name in losses if name in situations]),
            unknown=tuple(self._unknown),
        )

    def _losses(self) -> Iterator[tuple[str, GroupSnapshot]]:
        """Yield each broker whose loss leaves queues, and the group without it; in Kafka other replicas take over."""
        for broker in sorted({state.queue.place[-1] for state in self._snapshot.data_queues if state.queue.broker}):
            try:
                yield broker, lose_broker(self._switched, broker).without
            except BadInputError:
                continue

    def _outcomes(self, futures: Mapping[str, tuple[GroupSnapshot, int]]) -> dict[str, CandidateOutcome]:
        tried = {name: _try(future, count) for name, (future, count) in futures.items()}
        self._unknown += [
            f"what {self._present.strategy} gives to whom with {count} of them{self._without(name)}"
            for name, (_, count) in futures.items()
            if tried[name] is None
        ]
        return {name: outcome for name, outcome in tried.items() if outcome is not None}

    def _without(self, name: str) -> str:
        return "" if name in _COUNTS else f" and without {name}"

    def _drawn(self, futures: Mapping[str, tuple[GroupSnapshot, int]]) -> dict[str, DrawnAnew]:
        members = [(future, self._snapshot.members_at(count)) for future, count in futures.values()]
        drawn = group_model(self._switched).drawn_anew(self._present.strategy, members)
        return {} if drawn is None else dict(zip(futures, drawn, strict=True))

    def _situation(self, outcome: CandidateOutcome, anew: DrawnAnew | None) -> Situation:
        return _by_outcome(outcome, self._present) if anew is None else _by_draws(outcome, anew, self._snapshot)

    @property
    def _is_current(self) -> bool:
        own = self._snapshot.strategy, dict(self._snapshot.strategy_options)
        return (self._present.strategy, dict(self._options)) == own

    def _switch_moves(self) -> int:
        pairs = zip(self._snapshot.queues, self._switched.queues, strict=True)
        return sum(before.owner is not None and after.owner != before.owner for before, after in pairs)

    def _with_cost(self, situation: Situation, cost: _Cost) -> Situation:
        if self._digest is None:
            return situation
        transition, why = cost(situation.count, self._digest)
        return replace(situation, cost=transition, why=why)

    def _scaled(self, count: int, digest: str) -> tuple[Transition | None, str | None]:
        outcome = simulate_candidate(self._switched, count, self._present.strategy)
        costed = with_transition(outcome, self._switched, digest, self._trials)
        return costed.transition, None if costed.transition else costed.unknowns[-1]

    def _crashed(self, _: int, digest: str) -> tuple[Transition | None, str | None]:
        """Return what the crash of one pod costs: in half of the trials the one that owns least, else most."""
        least, most = _lightest_and_heaviest(self._switched)
        lower, upper = (group_model(self._switched).leave_change(clients, CRASH) for clients in (least, most))
        try:
            return transition_of(self._present, self._switched, digest, (lower, upper), self._trials), None
        except PlannerError as error:
            return None, f"what the crash costs: {str(error).rstrip('.')}"

    def _worst(self, losses: Sequence[Situation]) -> Situation | None:
        """Return the group without the broker whose loss leaves its busiest consumer most."""
        worst = max(losses, key=lambda situation: situation.busiest, default=None)
        if worst is None or worst.broker is None or self._digest is None:
            return worst
        cost, why = loss_transition(self._present, self._switched, worst.broker, self._digest, self._trials)
        return replace(worst, cost=cost, why=why)


def _moved_between(before: CandidateOutcome, after: CandidateOutcome) -> int:
    """Return how many queues that both have change owner; the members are the same."""
    owners = {owned.queue: owned.owner for owned in before.owners}
    return sum(owners[owned.queue] is not None and owned.owner != owners[owned.queue] for owned in after.owners)


def _lightest_and_heaviest(snapshot: GroupSnapshot) -> tuple[Sequence[str], Sequence[str]]:
    """Return the members of the pod that owns least, and those of the one that owns most; a member by itself else."""
    owned = dict.fromkeys(snapshot.clients, 0)
    for state in snapshot.data_queues:
        if state.owner in owned:
            owned[state.owner] += 1
    pod_of = {link.client: link.pod for link in snapshot.pods}
    pods: dict[str, list[str]] = {}
    for client in snapshot.clients:
        pods.setdefault(pod_of.get(client, client), []).append(client)
    ordered = sorted(pods.values(), key=lambda clients: sum(owned[client] for client in clients))
    return ordered[0], ordered[-1]


def _by_outcome(outcome: CandidateOutcome, present: CandidateOutcome) -> Situation:
    least, most = outcome.moved_fewest, outcome.moved_most
    if outcome.count == present.count:
        least = most = _moved_between(present, outcome)
    rates = [load.arrival_rate for load in outcome.loads if load.arrival_rate]
    return Situation(
        count=outcome.count,
        busiest=max(rates, default=float(outcome.largest_share)),
        utilisation=outcome.utilisation,
        largest_share=outcome.largest_share,
        moved_fewest=least,
        moved_most=most,
        mean_moved=None if least is None or most is None else (least + most) / 2,
    )


def _by_draws(outcome: CandidateOutcome, anew: DrawnAnew, snapshot: GroupSnapshot) -> Situation:
    capacity = known.sure_messages_per_s if (known := snapshot.consumer_capacity) else None
    return Situation(
        count=outcome.count,
        busiest=anew.busiest or float(anew.largest_share),
        utilisation=anew.busiest / capacity if capacity and outcome.utilisation is not None else None,
        largest_share=anew.largest_share,
        moved_fewest=int(anew.moved.p05),
        moved_most=int(anew.moved.p95),
        mean_moved=anew.mean_moved,
    )


def excesses(rows: Sequence[StrategyFigures]) -> tuple[float, ...]:
    """Return for each row how much more its busiest consumer carries than under the most even strategy, at the worst.

    1.2 says: in one of the situations a fifth more, in none a larger part. Infinite where another strategy can be
    simulated in a situation and this one cannot.
    """
    worst = [1.0] * len(rows)
    for situations in zip(*(row.situations for row in rows), strict=True):
        busiest = [None if situation is None else situation.busiest for situation in situations]
        least = min((load for load in busiest if load is not None), default=None)
        for index, load in enumerate(busiest):
            if least is not None:
                worst[index] = max(worst[index], _ratio(load, least))
    return tuple(worst)


def _ratio(load: float | None, least: float) -> float:
    if load is None:
        return float("inf")
    return load / least if least else 1.0


def advise(rows: Sequence[StrategyFigures]) -> StrategyFigures | None:
    """Return the strategy that moves fewest queues of those that are as even as the most even one.

    Even is what nowhere leaves much more on the busiest consumer than another strategy does (``excesses``). The group's
    own strategy wins where it is as good, as a switch is a change, too. ``None`` without rows, and where the group's
    own strategy cannot be simulated in each situation, so that nobody knows whether another one is better.
    """
    worst = excesses(rows)
    if not rows or any(row.is_current and excess == float("inf") for row, excess in zip(rows, worst, strict=True)):
        return None
    even = [row for row, excess in zip(rows, worst, strict=True) if excess <= AS_EVEN * min(worst)]
    calm = [row for row in even if row.moves <= AS_EVEN * min(each.moves for each in even)]
    return min(calm, key=lambda row: (not row.is_current, row.moves, row.switch_moves))
