"""Another name for a consumer group: its offsets are cloned, and another Deployment consumes as the new group."""

from planner.errors import BadInputError
from planner.rollout.migrations.green import CONTENT, Green, cheapest, in_a_window, of_new_group, side_by_side, told
from planner.rollout.migrations.migration import Ground, Migration, all_owned, known_cost
from planner.rollout.migrations.rooms import settled
from planner.rollout.template import TemplateChange

KIND = "rename"


def rename(found: Ground, to: str, change: TemplateChange, green: str) -> Migration:
    """Return the cheaper way to the group name ``to``, which ``change`` of the template brings; ``green`` takes over.

    Either all stop before any starts, or both groups consume for a while and all comes twice; an orderly group takes
    the first. Raises ``BadInputError`` for the name that the group has.
    """
    if to == found.snapshot.group:
        raise BadInputError(f"group {to} has this name already: nothing is to be changed")
    as_now = settled(found, found.count)
    takeover = Green(green, change, found.strategy, to, as_now.options, as_now.new_room)
    ways = [in_a_window(found, takeover)]
    if not found.snapshot.orderly:
        ways.append(side_by_side(found, takeover))
    best = cheapest(ways)
    return Migration(
        kind=KIND,
        steps=best.steps,
        must_be_true=(*of_new_group(found, to), CONTENT),
        why=tuple(told(best, ways)),
        moved=all_owned(found),
        cost=known_cost(best.transition),
        unknowns=(best.unknown,) if best.unknown else (),
    )
