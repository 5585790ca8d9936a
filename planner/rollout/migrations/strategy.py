"""Another allocation strategy for a RocketMQ group. Its members allocate alone, so two strategies at a time tear it."""

from typing import Any

from planner.allocation.registry import find_strategy
from planner.errors import BadInputError
from planner.model.queues import MessageQueue
from planner.rollout.migrations.green import CONTENT, Green, cheapest, in_a_window, side_by_side, told
from planner.rollout.migrations.migration import Ground, Migration, all_owned, known_cost
from planner.rollout.refusals import Refusal, refused
from planner.rollout.template import TemplateChange
from planner.simulation.ownership import ownership, views_with

KIND = "strategy"


def strategy(
    found: Ground,
    to: str,
    options: dict[str, Any],
    change: TemplateChange,
    green: str,
    new_group: str | None = None,
) -> Migration:
    """Return the safe way to the strategy ``to``, which ``change`` of the template brings; ``green`` takes over.

    All stop before any starts; with ``new_group`` a second group beside the old one is weighed, too, and the cheaper of
    the two is taken, unless the group consumes in order, which two groups at a time would break.
    Raises ``UnknownNameError`` for a strategy not known here, ``BadInputError`` for one that is there already.
    """
    group = found.snapshot.group
    if found.snapshot.system != "rocketmq":
        raise BadInputError(f"group {group} is a Kafka group: its assignor changes in rolls, use that migration")
    find_strategy(to, options)
    if (to, options) == (found.strategy, found.snapshot.strategy_options):
        raise BadInputError(f"group {group} has strategy {to} already: nothing is to be changed")
    ways = [in_a_window(found, Green(green, change, to))]
    if new_group is not None and not found.snapshot.orderly:
        ways.append(side_by_side(found, Green(green, change, to, new_group)))
    best = cheapest(ways)
    return Migration(
        kind=KIND,
        steps=best.steps,
        must_be_true=(f"the changed template makes every consumer allocate by {to}", CONTENT),
        why=(why_not_rolling(found, to, options), *told(best, ways)),
        moved=all_owned(found),
        cost=known_cost(best.transition),
        unknowns=(best.unknown,) if best.unknown else (),
    )


def refuse_rolling(found: Ground, to: str, options: dict[str, Any]) -> None:
    """Raise ``RefusedError`` for the naive way, a rolling update to another strategy, with what it would do."""
    raise refused(Refusal.SPLIT_BRAIN, f"{why_not_rolling(found, to, options)} Use the migration {KIND}.")


def why_not_rolling(found: Ground, to: str, options: dict[str, Any]) -> str:
    """Return in a sentence what the group is while half of its members follow one strategy and half the other."""
    members, snapshot = found.snapshot.clients, found.snapshot
    old, new = find_strategy(found.strategy, snapshot.strategy_options), find_strategy(to, options)
    half = len(members) // 2 or 1
    queues = [state.queue for state in snapshot.data_queues if isinstance(state.queue, MessageQueue)]
    torn = ownership(views_with([(m, new if place < half else old) for place, m in enumerate(members)], queues))
    return (
        f"A rolling change would tear the group: with {half} of {len(members)} members on {to}, "
        f"{len(torn.doubled)} queues have two owners and {len(torn.orphans)} none."
    )
