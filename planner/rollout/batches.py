"""How a group gets to another size: all at once or in batches, whichever costs less by the simulation."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from planner.decision.prices import Prices
from planner.model.deployments import Deployment
from planner.model.machine_rooms import with_new_rooms
from planner.model.membership import KafkaMember
from planner.model.snapshot import ClientSetup, GroupSnapshot
from planner.rollout.steps import MovedQueues
from planner.rollout.victims import Choice, Loss, choose_victims
from planner.simulation.candidates import simulate_candidate
from planner.simulation.newcomers import known_links
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.transition import with_transition

TRIALS = 60
LEAST_TRIALS = 10
MOST_CELLS = 2_000_000
"""Trials of each batch that is compared with all at once, and bounds for large groups: trials x queues x members."""
MOST_BATCHES = 3
CLEARLY = 0.1
"""By which share each further rebalance must make a plan cheaper to be worth it."""
_LAST = "\uffff"
"""Newcomers are taken to sort behind every id that is there."""


@dataclass(frozen=True, slots=True)
class Span:
    """From the least to the most, in the unit of what it is about."""

    least: float = 0.0
    most: float = 0.0

    def __add__(self, other: "Span") -> "Span":
        return Span(self.least + other.least, self.most + other.most)

    def times(self, factor: float) -> "Span":
        """Return both ends times ``factor``."""
        return Span(self.least * factor, self.most * factor)


@dataclass(frozen=True, slots=True)
class Batch:
    """One of the plan's rebalances: ``outcome`` is the group after it, ``choice`` who stops where that is known."""

    before: int
    outcome: CandidateOutcome
    choice: Choice | None = None

    @property
    def count(self) -> int:
        """Pods afterwards."""
        return self.outcome.count

    @property
    def moved(self) -> MovedQueues:
        """Queues that change owner in it."""
        return MovedQueues(self.outcome.moved_fewest, self.outcome.moved_most)


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """How a group gets to its new size: one batch after the other, each once the group has settled from the last.

    ``cost`` is in seconds of one consumer, ``None`` where not even the moved queues are known.
    """

    batches: tuple[Batch, ...]
    cost: Span | None = None

    @property
    def is_timed(self) -> bool:
        """True when duplicates and times are known and in the cost, not moved queues alone."""
        return all(batch.outcome.transition and batch.outcome.transition.settle_s for batch in self.batches)

    @property
    def moved(self) -> MovedQueues:
        """Queues that change owner in all batches; one that moves twice counts twice."""
        known = [batch.moved for batch in self.batches]
        fewest = [moved.fewest for moved in known if moved.fewest is not None]
        most = [moved.most for moved in known if moved.most is not None]
        return MovedQueues(sum(fewest), sum(most)) if len(fewest) == len(most) == len(known) else MovedQueues()


@dataclass(frozen=True, slots=True)
class BatchPlans:
    """All plans that were compared, cheapest upper bound first; one more rebalance must be worth it clearly."""

    compared: tuple[BatchPlan, ...]

    @property
    def best(self) -> BatchPlan:
        """The plan to carry out."""
        return self.compared[0]


def find_batch_plans(
    snapshot: GroupSnapshot,
    digest: str,
    chosen: CandidateOutcome,
    prices: Prices,
    *,
    has_pods: bool,
    is_at_once: bool = False,
    stops: Mapping[str, int] | None = None,
) -> BatchPlans:
    """Return the batch plans from the present members to ``chosen``, which must be of another count, cheapest first.

    Each batch is simulated on the group as the one before leaves it. With ``has_pods`` victims are chosen, and the
    queues that move are exact; without, they lie between the best and the worst choice. Plans whose moved
    queues alone cost more than all of another plan are not simulated further. Where no dynamics can be run, plans are
    compared by moved queues alone.

    The last pods stop and the first ones start all at once: there is no group to simulate in between. So do pods of
    several groups (``is_at_once``): what suits one group would have all others rebalance more often. ``stops`` says how
    many pods each of several Deployments stops.

    Raises ``RefusedError`` where victims are to be chosen and cannot be.
    """
    present = snapshot.count
    at_once = _with_cost(BatchPlan((_at_once(snapshot, digest, chosen, stops, has_pods=has_pods),)), prices)
    batch_plans = [at_once]
    sequences = _sequences(present, chosen.count) if present and chosen.count and not is_at_once else ()
    for counts in sequences:
        batch_plan = _with_cost(_in_batches(snapshot, counts, has_pods=has_pods), prices)
        if at_once.is_timed and _may_be_cheaper(batch_plan, at_once):
            batch_plan = _with_cost(_with_transitions(snapshot, digest, batch_plan), prices)
        batch_plans.append(batch_plan)
    if at_once.is_timed and any(
        not batch_plan.is_timed and _may_be_cheaper(batch_plan, at_once) for batch_plan in batch_plans
    ):
        batch_plans = [replace(batch_plan, cost=_by_moves(batch_plan, prices)) for batch_plan in batch_plans]
    return BatchPlans(in_order(batch_plans))


def _may_be_cheaper(batch_plan: BatchPlan, other: BatchPlan) -> bool:
    return batch_plan.cost is not None and other.cost is not None and batch_plan.cost.least < other.cost.most


def in_order(batch_plans: Sequence[BatchPlan]) -> tuple[BatchPlan, ...]:
    """Return the plans by the upper bounds of their costs, unknown ones last."""
    return tuple(sorted(batch_plans, key=_upper_end))


def _upper_end(batch_plan: BatchPlan) -> tuple[float, int]:
    """Costs too close for the trials to distinguish count in favour of fewer rebalances."""
    rebalances = len(batch_plan.batches)
    return batch_plan.cost.most * (1 + CLEARLY * (rebalances - 1)) if batch_plan.cost else math.inf, rebalances


def _sequences(present: int, target: int) -> Iterator[tuple[int, ...]]:
    """Yield the counts after each batch: in two and in three batches as even as may be.

    3 to 8: (6, 8), (5, 7, 8).
    """
    change = target - present
    for batches in range(2, min(MOST_BATCHES, abs(change)) + 1):
        yield tuple(present - (-change * number // batches) for number in range(1, batches + 1))


def _at_once(
    snapshot: GroupSnapshot,
    digest: str,
    chosen: CandidateOutcome,
    stops: Mapping[str, int] | None,
    *,
    has_pods: bool,
) -> Batch:
    present = snapshot.count
    if chosen.count > present or not has_pods or not chosen.count:
        return Batch(present, chosen)
    choice = choose_victims(snapshot, present - chosen.count, partial(loss_of, snapshot, digest), stops)
    exact = simulate_candidate(snapshot, chosen.count, chosen.strategy, choice.staying)
    return Batch(present, with_transition(exact, snapshot, digest), choice)


def _in_batches(snapshot: GroupSnapshot, counts: Sequence[int], *, has_pods: bool) -> BatchPlan:
    batches: list[Batch] = []
    for count in counts:
        present = snapshot.count
        choice = choose_victims(snapshot, present - count) if count < present and has_pods else None
        outcome = simulate_candidate(snapshot, count, snapshot.strategy or "", choice.staying if choice else None)
        batches.append(Batch(present, outcome, choice))
        snapshot = after(snapshot, outcome)
    return BatchPlan(tuple(batches))


def _with_transitions(snapshot: GroupSnapshot, digest: str, batch_plan: BatchPlan) -> BatchPlan:
    """Return the plan with the cost of each of its batches."""
    batches: list[Batch] = []
    for batch in batch_plan.batches:
        trials = _trials(snapshot, batch.count)
        batches.append(replace(batch, outcome=with_transition(batch.outcome, snapshot, digest, trials)))
        snapshot = after(snapshot, batch.outcome)
    return replace(batch_plan, batches=tuple(batches))


def _trials(snapshot: GroupSnapshot, count: int) -> int:
    """Return how many trials a comparison is worth: fewer, the larger the group is."""
    cells = len(snapshot.data_queues) * max(len(snapshot.clients), snapshot.members_at(count))
    return min(max(MOST_CELLS // cells, LEAST_TRIALS), TRIALS)


def loss_of(snapshot: GroupSnapshot, digest: str, staying: Sequence[str]) -> Loss:
    """Return the duplicates and the longest pause (s) that the others' stop costs, in the median; () where unknown."""
    outcome = simulate_candidate(snapshot, _pods_of(snapshot, staying), snapshot.strategy or "", staying)
    transition = with_transition(outcome, snapshot, digest, _trials(snapshot, outcome.count)).transition
    if transition is None:
        return ()
    return transition.duplicates.p50, transition.pause_s.p50 if transition.pause_s else 0.0


def _pods_of(snapshot: GroupSnapshot, members: Sequence[str]) -> int:
    """Return how many pods run these members, which are all of theirs."""
    return len(members) // (snapshot.members_per_pod or 1)


def _with_cost(batch_plan: BatchPlan, prices: Prices) -> BatchPlan:
    """Return the plan with its cost: moved queues, and whatever else is known of it."""
    moves = _by_moves(batch_plan, prices)
    return replace(batch_plan, cost=_with_times(batch_plan, moves, prices) if moves and batch_plan.is_timed else moves)


def _by_moves(batch_plan: BatchPlan, prices: Prices) -> Span | None:
    moved = batch_plan.moved
    if moved.fewest is None or moved.most is None:
        return None
    return Span(moved.fewest, moved.most).times(prices.moved_queue_s)


def _with_times(batch_plan: BatchPlan, moves: Span, prices: Prices) -> Span:
    """Add duplicates, and the consumers that are missing or not gone until the group has settled."""
    cost, target = moves, batch_plan.batches[-1].count
    for batch in batch_plan.batches:
        transition = batch.outcome.transition
        assert transition is not None
        assert transition.settle_s is not None
        settle, duplicates = transition.settle_s, transition.duplicates
        cost += Span(settle.p05, settle.p95).times(abs(target - batch.before))
        cost += Span(duplicates.p05, duplicates.p95).times(prices.duplicate_s)
    return cost


def after(snapshot: GroupSnapshot, outcome: CandidateOutcome) -> GroupSnapshot:
    """Return the group as it is once ``outcome`` has come about; newcomers are set up like those that were there.

    They keep the ids that were drawn for them, and the machine rooms, or those that their pods' names make known;
    others are named so that they sort last.
    """
    drawn = outcome.drawn
    links = known_links(snapshot, outcome.count)
    named = {link.client for link in links}
    newcomers = {
        load.client: load.client if drawn or load.client in named else f"{_LAST}{load.client} towards {outcome.count}"
        for load in outcome.loads
        if load.client not in snapshot.clients
    }
    clients = tuple(sorted(newcomers.get(load.client, load.client) for load in outcome.loads))
    owners = {owned.queue: owned.owner and newcomers.get(owned.owner, owned.owner) for owned in outcome.owners}
    pods = tuple(link for link in (*snapshot.pods, *links) if link.client in clients)
    options = snapshot.strategy_options
    return replace(
        snapshot,
        clients=clients,
        queues=tuple(replace(state, owner=owners.get(state.queue, state.owner)) for state in snapshot.queues),
        setups=_setups(snapshot, clients),
        members=_members(snapshot, clients),
        strategy_options=with_new_rooms(snapshot.strategy_options, dict(drawn.rooms)) if drawn else options,
        pods=pods,
        deployment=snapshot.deployment and _without_others(snapshot.deployment, {link.pod for link in pods}),
    )


def _setups(snapshot: GroupSnapshot, clients: Sequence[str]) -> tuple[ClientSetup, ...]:
    known = {setup.client: setup for setup in snapshot.setups}
    usual = snapshot.setups[0] if snapshot.setups else None
    return tuple(known.get(client) or replace(usual, client=client) for client in clients) if usual else ()


def _members(snapshot: GroupSnapshot, clients: Sequence[str]) -> tuple[KafkaMember, ...]:
    known = {member.member_id: member for member in snapshot.members}
    usual = replace(snapshot.members[0], instance_id=None, owned=None) if snapshot.members else None
    return tuple(known.get(client) or replace(usual, member_id=client) for client in clients) if usual else ()


def _without_others(deployment: Deployment, pods: Collection[str]) -> Deployment:
    left = tuple(pod for pod in deployment.pods or () if pod.name in pods)
    return replace(deployment, pods=left, replicas=len(left))
