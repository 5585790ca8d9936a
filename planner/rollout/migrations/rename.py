"""Another name for a consumer group: its offsets are cloned, and another Deployment consumes as the new group."""

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
from planner.rollout.migrations.machine_rooms import await_settled
from planner.rollout.migrations.migration import Migration, MigrationContext, all_owned, known_cost
from planner.rollout.template import TemplateChange

KIND = "rename"


def rename(context: MigrationContext, to: str, change: TemplateChange, green: str) -> Migration:
    """Return the cheaper change to the group name ``to``, which the template's ``change`` brings; ``green`` takes over.

    Either all stop before any starts, or both groups consume for a while and all is duplicated; an orderly group takes
    the first. Raises ``BadInputError`` for the name that the group has.
    """
    if to == context.snapshot.group:
        raise BadInputError(f"group {to} has this name already: nothing is to be changed")
    as_now = await_settled(context, context.count)
    green_group = Green(green, change, context.strategy, to, as_now.options, as_now.new_room)
    takeovers = [in_a_window(context, green_group)]
    if not context.snapshot.orderly:
        takeovers.append(side_by_side(context, green_group))
    best = cheapest(takeovers)
    return Migration(
        kind=KIND,
        steps=best.steps,
        must_be_true=(*of_new_group(context, to), CONTENT),
        why=tuple(explain_choice(best, takeovers)),
        moved=all_owned(context),
        cost=known_cost(best.transition),
        unknowns=(best.unknown,) if best.unknown else (),
    )
