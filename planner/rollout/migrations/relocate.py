"""The same group in another Deployment, on other nodes or in another room: blue and green side by side."""

from dataclasses import replace

from planner.rollout.batches import after
from planner.rollout.build import cost_of, costs_together
from planner.rollout.migrations.green import CONTENT, CREATE_LIMIT_S
from planner.rollout.migrations.migration import Ground, Migration, all_owned, check_orderly
from planner.rollout.refusals import Refusal, refused
from planner.rollout.steps import (
    AwaitReady,
    AwaitSettled,
    CheckForecast,
    CreateDeployment,
    MovedQueues,
    StartConsumers,
    StopConsumers,
)
from planner.rollout.template import TemplateChange
from planner.simulation.candidates import simulate_candidate
from planner.simulation.outcome import CandidateOutcome
from planner.simulation.transition import with_transition

KIND = "relocate"


def relocate(found: Ground, change: TemplateChange, green: str) -> Migration:
    """Return the way of all consumers to the Deployment ``green``: as many start beside them, then the old ones stop.

    Both are members of one group with one strategy meanwhile, so nobody is without an owner, and the group rebalances
    twice. Raises ``RefusedError`` under strategies that go by rooms: while both are there, shares of one room's queues
    would fall to members of the other, and nobody would consume them.
    """
    check_orderly(found)
    _check_rooms(found)
    settings, count = found.settings, found.count
    joined, left = _rebalances(found)
    back = f"set the replicas of {settings.deployment} back to {count}"
    return Migration(
        kind=KIND,
        steps=(
            CreateDeployment(green, CREATE_LIMIT_S, change),
            StartConsumers(
                0,
                count,
                settings.ready_limit_s,
                moved_in(joined),
                f"set the replicas of {green} back to 0",
                deployment=green,
            ),
            AwaitReady(count, settings.ready_limit_s, deployment=green),
            AwaitSettled(2 * count, found.strategy, settings.settled_limit_s),
            StopConsumers(count, 0, (), settings.ready_limit_s, moved_in(left), back),
            AwaitReady(0, settings.ready_limit_s),
            AwaitSettled(count, found.strategy, settings.settled_limit_s),
            CheckForecast(settings.settled_limit_s),
        ),
        must_be_true=("both Deployments run the same version with the same settings and subscriptions", CONTENT),
        why=("All green consumers start before any old one stops: two rebalances, and no queue is without an owner.",),
        moved=all_owned(found),
        cost=costs_together([cost_of(joined.transition), cost_of(left.transition)])
        if joined.transition and left.transition
        else None,
        unknowns=tuple(dict.fromkeys((*joined.unknowns, *left.unknowns))),
    )


def _check_rooms(found: Ground) -> None:
    group = found.snapshot.group
    if found.strategy == "MACHINE_ROOM":
        raise refused(
            Refusal.SPLIT_BRAIN,
            f"group {group} allocates by {found.strategy}: members of two rooms beside each other would leave queues "
            "without an owner; use the migration strategy with the new rooms, which stops all before any start",
        )
    if found.strategy.startswith("MACHINE_ROOM_NEARBY"):
        raise refused(
            Refusal.UNKNOWN_STRATEGY,
            f"group {group} allocates by {found.strategy}: the rooms of members that are not there yet are not known, "
            "so nobody could tell when the group has settled",
        )


def _rebalances(found: Ground) -> tuple[CandidateOutcome, CandidateOutcome]:
    """Return the group with twice as many members, and with the old ones gone.

    Moved queues are the range over all places where the new ids may sort; pauses are those of ids that sort last.
    """
    snapshot, digest, count = found.snapshot, found.digest, found.count
    joined = with_transition(simulate_candidate(snapshot, 2 * count, found.strategy), snapshot, digest)
    doubled = after(snapshot, joined)
    green = [client for client in doubled.clients if client not in snapshot.clients]
    left = with_transition(simulate_candidate(doubled, count, found.strategy, green), doubled, digest)
    any_half = simulate_candidate(doubled, count, found.strategy)
    return joined, replace(left, moved_fewest=any_half.moved_fewest, moved_most=any_half.moved_most)


def moved_in(outcome: CandidateOutcome) -> MovedQueues:
    """Return how many queues move on the way to an outcome."""
    return MovedQueues(outcome.moved_fewest, outcome.moved_most)
