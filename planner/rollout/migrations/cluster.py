"""The same group on another cluster. Offsets count one cluster's messages, so none is carried over: the old one drains.

A plan observes one cluster, the old one. People look after the other one, and the plan asks them.
"""

from planner.errors import BadInputError
from planner.rollout.migrations.green import CREATE_LIMIT_S, stop_steps
from planner.rollout.migrations.migration import Migration, MigrationContext, all_owned, check_orderly
from planner.rollout.steps import (
    AwaitLag,
    AwaitReady,
    CheckForecast,
    CreateDeployment,
    MovedQueues,
    PauseForPerson,
    StartConsumers,
    Step,
)
from planner.rollout.template import TemplateChange

KIND = "cluster"
ASK_LIMIT_S = 86_400
"""How long people have to move the producers."""
DRAIN_LIMIT_S = 3_600
"""How long what is left in the old cluster may take: time enough for a backlog, an end to waiting for ever."""


def cluster(context: MigrationContext, to: str, change: TemplateChange, green: str) -> Migration:
    """Return the migration to the cluster ``to``, which ``change`` of the template brings; ``green`` consumes there.

    The green consumers start before the producers move, and the old ones stop once nothing is left for them: nobody
    waits, and nothing comes twice. In an orderly group the green ones start last, or a key's newer messages would
    overtake its older ones. Raises ``BadInputError`` for the cluster where the group is.
    """
    snapshot = context.snapshot
    if to == snapshot.cluster:
        raise BadInputError(f"group {snapshot.group} is in cluster {to} already: nothing is to be changed")
    check_orderly(context)
    return Migration(
        kind=KIND,
        steps=(
            CreateDeployment(green, CREATE_LIMIT_S, change),
            *(_drain_first_steps(context, to, green) if snapshot.orderly else _side_by_side(context, to, green)),
            CheckForecast(context.settings.settled_limit_s),
        ),
        must_be_true=(
            f"the changed template makes every consumer join group {snapshot.group} in cluster {to}",
            f"cluster {to} has the topics of the group, and holds nothing yet that the group must not consume",
            "no message of the old cluster waits for a later redelivery when the last producer has moved",
            f"a policy for the group in cluster {to} stands beside this one once the plan has succeeded",
        ),
        why=(_why(context, to),),
        moved=all_owned(context),
        unknowns=(f"what the group does in cluster {to}: the plan reads cluster {snapshot.cluster} only",),
    )


def _side_by_side(context: MigrationContext, to: str, green: str) -> tuple[Step, ...]:
    group = context.snapshot.group
    question = (
        f"Do the consumers of {green} own every queue of group {group} in cluster {to}, as planner doctor says with a "
        f"policy for that cluster, and do all producers write to cluster {to} only?"
    )
    return (*_start_steps(context, green), PauseForPerson(question, ASK_LIMIT_S), *_drain_steps(context))


def _drain_first_steps(context: MigrationContext, to: str, green: str) -> tuple[Step, ...]:
    question = f"Do all producers write to cluster {to} only?"
    return (PauseForPerson(question, ASK_LIMIT_S), *_drain_steps(context), *_start_steps(context, green))


def _drain_steps(context: MigrationContext) -> tuple[Step, ...]:
    return (AwaitLag(DRAIN_LIMIT_S, messages=0), *stop_steps(context))


def _start_steps(context: MigrationContext, green: str) -> tuple[Step, ...]:
    """No queue of the old cluster moves, and the owners in the other cluster are not observed."""
    undo = f"set the replicas of {green} back to 0"
    limit_s = context.settings.ready_limit_s
    return (
        StartConsumers(0, context.count, limit_s, MovedQueues(0, 0), undo, deployment=green),
        AwaitReady(context.count, limit_s, deployment=green),
    )


def _why(context: MigrationContext, to: str) -> str:
    if context.snapshot.orderly:
        return (
            f"The group consumes in order: those in cluster {to} start once the old cluster is drained, and what comes "
            "meanwhile waits for them."
        )
    return (
        f"Consumers in cluster {to} first, then the producers, and the old consumers last: no message waits for its "
        "consumer, and none is left behind."
    )
