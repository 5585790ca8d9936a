"""A group goes back, or ahead, to a time: all its consumers stop, its offsets are set, as many start again."""

from datetime import datetime

from planner.errors import BadInputError
from planner.rollout.migrations.green import CLONE_LIMIT_S, stop_steps
from planner.rollout.migrations.machine_rooms import await_settled
from planner.rollout.migrations.migration import Migration, MigrationContext, all_owned, check_orderly
from planner.rollout.steps import AwaitReady, CheckForecast, ResetOffsets, StartConsumers

KIND = "reset"


def reset(context: MigrationContext, to: datetime) -> Migration:
    """Return the migration of the group to the first messages since ``to``, in its own Deployment.

    Once the offsets are set that is final: the group consumes from there on. Raises ``BadInputError`` for a
    time after the snapshot's, of which no broker knows a message yet.
    """
    check_orderly(context)
    group, settings, count = context.snapshot.group, context.settings, context.count
    if to > context.snapshot.at:
        raise BadInputError(
            f"group {group} cannot begin at {to:%Y-%m-%d %H:%M:%S %Z}: that is after the snapshot of "
            f"{context.snapshot.at:%Y-%m-%d %H:%M:%S %Z}"
        )
    undo = f"set the replicas of {settings.deployment} back to 0"
    return Migration(
        kind=KIND,
        steps=(
            *stop_steps(context),
            ResetOffsets(group, to, f"set the offsets of {group}", CLONE_LIMIT_S),
            StartConsumers(0, count, settings.ready_limit_s, all_owned(context), undo),
            AwaitReady(count, settings.ready_limit_s),
            await_settled(context, count),
            CheckForecast(settings.settled_limit_s),
        ),
        must_be_true=(
            f"what the group has consumed since {to:%Y-%m-%d %H:%M:%S %Z} may come again",
            "what it has not consumed from before then is given up",
        ),
        why=("All stop first: members of a running group would write their own offsets over those that are set.",),
        moved=all_owned(context),
        unknowns=("what the migration costs: how many messages come again or are left out is not in the snapshot",),
    )
