"""Another allocation strategy for a RocketMQ group. Its members allocate alone, so two strategies at a time tear it."""

from dataclasses import replace

from planner.errors import BadInputError
from planner.rollout.migrations.green import (
    CONTENT,
    Green,
    cheapest,
    explain_choice,
    in_a_window,
    of_new_group,
    side_by_side,
)
from planner.rollout.migrations.machine_rooms import MADE_UP, check_answers, strategy_for
from planner.rollout.migrations.migration import Migration, MigrationContext, all_owned, known_cost
from planner.rollout.migrations.split_brain import describe_split_brain
from planner.simulation.group_model import system_of

KIND = "strategy"


def strategy(context: MigrationContext, green: Green, new_group: str | None = None) -> Migration:
    """Return the safe migration to the strategy of ``green``, which its change of the template brings.

    All stop before any starts; with ``new_group`` a second group beside the old one is weighed, too, and the cheaper of
    the two is taken, unless the group consumes in order, which two groups at a time would break.
    Raises ``UnknownNameError`` for a strategy not known here, ``BadInputError`` for one that is there already or for
    wrong parameters, ``RefusedError`` for one under which nothing shows when the group has settled.
    """
    snapshot, to, options = context.snapshot, green.strategy, green.options or {}
    if not system_of(snapshot).members_allocate:
        raise BadInputError(
            f"group {snapshot.group} is a Kafka group: its assignor changes in rolls, use that migration"
        )
    new = strategy_for(to, options, green.room, (*snapshot.clients, MADE_UP))
    if (to, options) == (context.strategy, snapshot.strategy_options):
        raise BadInputError(f"group {snapshot.group} has strategy {to} already: nothing is to be changed")
    check_answers(to, new, snapshot)
    window = in_a_window(context, green)
    takeovers = [window]
    if new_group is not None and not snapshot.orderly:
        takeovers.append(side_by_side(context, replace(green, group=new_group)))
    best = cheapest(takeovers)
    joined = of_new_group(context, new_group) if new_group is not None and best is not window else ()
    return Migration(
        kind=KIND,
        steps=best.steps,
        must_be_true=(
            f"the changed template makes every consumer allocate by {to}{' so set up' if options else ''}",
            *((f"every green consumer runs in machine room {green.room}",) if green.room else ()),
            *joined,
            CONTENT,
            *(("spec.strategy and spec.strategyOptions of the policy say the same from then on",) if options else ()),
        ),
        why=(describe_split_brain(context, new, to), *explain_choice(best, takeovers)),
        moved=all_owned(context),
        cost=known_cost(best.transition),
        unknowns=(best.unknown,) if best.unknown else (),
    )
