"""The same group in another Deployment, on other nodes or in another room: blue and green side by side."""

from collections.abc import Iterator
from dataclasses import replace

from planner.rollout.batches import after
from planner.rollout.migrations.green import CONTENT, CREATE_LIMIT_S
from planner.rollout.migrations.machine_rooms import await_settled, goes_by_rooms
from planner.rollout.migrations.migration import Migration, MigrationContext, all_owned, check_orderly
from planner.rollout.plan_forecast import cost_of, costs_together
from planner.rollout.refusals import Refusal, refused
from planner.rollout.steps import (
    AwaitReady,
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


def relocate(context: MigrationContext, change: TemplateChange, green: str, room: str | None = None) -> Migration:
    """Return the move of all consumers to the Deployment ``green``: as many start beside them, then the old ones stop.

    Both are members of one group with one strategy meanwhile, so nobody is without an owner, and the group rebalances
    twice. Under ``MACHINE_ROOM_NEARBY`` the green ones are in ``room``, which must be named; how many queues move
    meanwhile is unknown then, as that goes by ids. Raises ``RefusedError`` under ``MACHINE_ROOM``: while both are
    there, shares of one room's queues would fall to members of the other, and nobody would consume them.
    """
    check_orderly(context)
    _check_rooms(context, room)
    settings, count = context.settings, context.count
    joined, left = _rebalances(context)
    costs = [outcome.transition for outcome in (joined, left) if outcome is not None and outcome.transition is not None]
    back = f"set the replicas of {settings.deployment} back to {count}"
    return Migration(
        kind=KIND,
        steps=(
            CreateDeployment(green, CREATE_LIMIT_S, change),
            StartConsumers(
                0,
                count,
                settings.ready_limit_s,
                moved_queues_of(joined),
                f"set the replicas of {green} back to 0",
                deployment=green,
            ),
            AwaitReady(count, settings.ready_limit_s, deployment=green),
            await_settled(context, 2 * count, room),
            StopConsumers(count, 0, (), settings.ready_limit_s, moved_queues_of(left), back),
            AwaitReady(0, settings.ready_limit_s),
            await_settled(context, count, room),
            CheckForecast(settings.settled_limit_s),
        ),
        must_be_true=tuple(_must_be_true(room)),
        why=("All green consumers start before any old one stops: two rebalances, and no queue is without an owner.",),
        moved=all_owned(context),
        cost=costs_together([cost_of(transition) for transition in costs]) if len(costs) == 2 else None,
        unknowns=tuple(dict.fromkeys((*joined.unknowns, *left.unknowns)))
        if joined and left
        else (f"what it costs in pauses and duplicates: {context.strategy} goes by the ids of members",),
    )


def _must_be_true(room: str | None) -> Iterator[str]:
    yield "both Deployments run the same version with the same settings and subscriptions"
    if room is not None:
        yield f"every green consumer runs in machine room {room}"
        yield "spec.strategyOptions of the policy name the machine rooms of the green consumers from then on"
    yield CONTENT


def _check_rooms(context: MigrationContext, room: str | None) -> None:
    group = context.snapshot.group
    if context.strategy == "MACHINE_ROOM":
        raise refused(
            Refusal.SPLIT_BRAIN,
            f"group {group} allocates by {context.strategy}: members of two machine rooms side by side would leave "
            "queues without an owner; change its machine rooms by the migration strategy, which stops all before any "
            "starts",
        )
    if goes_by_rooms(context.strategy) and room is None:
        raise refused(
            Refusal.UNKNOWN_STRATEGY,
            f"group {group} allocates by {context.strategy}: no check could say when it has settled, as the machine "
            "rooms of members that are not there yet are not known; name the one that all green consumers run in "
            "(--room)",
        )


def _rebalances(context: MigrationContext) -> tuple[CandidateOutcome, CandidateOutcome] | tuple[None, None]:
    """Return the group with twice as many members, and with the old ones gone; nothing where ids decide by rooms.

    Moved queues are the range over all places where the new ids may sort; pauses are those of ids that sort last.
    """
    if goes_by_rooms(context.strategy):
        return None, None
    snapshot, digest, count = context.snapshot, context.digest, context.count
    joined = with_transition(simulate_candidate(snapshot, 2 * count, context.strategy), snapshot, digest)
    doubled = after(snapshot, joined)
    green = [client for client in doubled.clients if client not in snapshot.clients]
    left = with_transition(simulate_candidate(doubled, count, context.strategy, green), doubled, digest)
    any_half = simulate_candidate(doubled, count, context.strategy)
    return joined, replace(left, moved_fewest=any_half.moved_fewest, moved_most=any_half.moved_most)


def moved_queues_of(outcome: CandidateOutcome | None) -> MovedQueues:
    """Return how many queues move for an outcome; unknown where there is none."""
    return MovedQueues(outcome.moved_fewest, outcome.moved_most) if outcome else MovedQueues(None, None)
