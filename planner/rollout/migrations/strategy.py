"""Another allocation strategy for a RocketMQ group. Its members allocate alone, so two strategies at a time tear it."""

from dataclasses import replace

from planner.errors import BadInputError
from planner.rollout.migrations.green import CONTENT, Green, cheapest, in_a_window, of_new_group, side_by_side, told
from planner.rollout.migrations.migration import Ground, Migration, all_owned, known_cost
from planner.rollout.migrations.rooms import MADE_UP, check_answers, strategy_for
from planner.rollout.migrations.torn import torn

KIND = "strategy"


def strategy(found: Ground, green: Green, new_group: str | None = None) -> Migration:
    """Return the safe way to the strategy of ``green``, which its change of the template brings.

    All stop before any starts; with ``new_group`` a second group beside the old one is weighed, too, and the cheaper of
    the two is taken, unless the group consumes in order, which two groups at a time would break.
    Raises ``UnknownNameError`` for a strategy not known here, ``BadInputError`` for one that is there already or for
    wrong parameters, ``RefusedError`` for one under which nobody could tell when the group has settled.
    """
    snapshot, to, options = found.snapshot, green.strategy, green.options or {}
    if snapshot.system != "rocketmq":
        raise BadInputError(
            f"group {snapshot.group} is a Kafka group: its assignor changes in rolls, use that migration"
        )
    new = strategy_for(to, options, green.room, (*snapshot.clients, MADE_UP))
    if (to, options) == (found.strategy, snapshot.strategy_options):
        raise BadInputError(f"group {snapshot.group} has strategy {to} already: nothing is to be changed")
    check_answers(to, new, snapshot)
    window = in_a_window(found, green)
    ways = [window]
    if new_group is not None and not snapshot.orderly:
        ways.append(side_by_side(found, replace(green, group=new_group)))
    best = cheapest(ways)
    joined = of_new_group(found, new_group) if new_group is not None and best is not window else ()
    return Migration(
        kind=KIND,
        steps=best.steps,
        must_be_true=(
            f"the changed template makes every consumer allocate by {to}{' so set up' if options else ''}",
            *((f"every green consumer runs in room {green.room}",) if green.room else ()),
            *joined,
            CONTENT,
            *(("spec.strategy and spec.strategyOptions of the policy say the same from then on",) if options else ()),
        ),
        why=(torn(found, new, to), *told(best, ways)),
        moved=all_owned(found),
        cost=known_cost(best.transition),
        unknowns=(best.unknown,) if best.unknown else (),
    )
