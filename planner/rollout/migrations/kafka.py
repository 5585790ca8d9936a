"""A Kafka group's assignor, or its protocol: rolls, as the group protocol demands them (KIP-429, KIP-848)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.errors import BadInputError, UnknownNameError
from planner.rollout.migrations.green import CONTENT, Green, explain_choice, in_a_window
from planner.rollout.migrations.migration import Migration, MigrationContext, all_owned, forecast_change, known_cost
from planner.rollout.migrations.requests import Variable
from planner.rollout.migrations.update import roll_change, update_steps
from planner.rollout.plan import Cost
from planner.rollout.plan_forecast import cost_of, costs_together
from planner.rollout.steps import Step
from planner.rollout.template import ContainerChange, Setting, TemplateChange
from planner.simulation.group_model import system_of

ASSIGNOR, PROTOCOL = "assignor", "consumerProtocol"
JAVA_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
SERVER_ASSIGNORS = ("uniform", "range-server")
LIBRDKAFKA = "librdkafka"
ROLL_SURGE = 1
_UNKNOWN_READY = "how long a pod takes until it is ready: none of the present ones shows it"


def assignor(context: MigrationContext, to: str, variable: Variable, from_revision: int) -> Migration:
    """Return the rolls of Java members to the assignor ``to``: first both are in every list, then the new one alone.

    One member of the first roll without the other name would find none in common with the rest
    (INCONSISTENT_GROUP_PROTOCOL). Where every member has shown both already, the first roll is left out.
    Raises ``UnknownNameError`` for an assignor that Java's clients lack, ``BadInputError`` for the one that is there,
    and where by the policy the members are librdkafka's, whose lists hold no classes.
    """
    old = context.strategy
    _check(context, to)
    _check_java(context, variable)
    lists = [member.assignors for member in context.snapshot.members]
    has_both = all(assignors is not None and {old, to} <= set(assignors) for assignors in lists)
    stages = [(to,)] if has_both else [(old, to), (to,)]
    moved = all_owned(context)
    steps: list[Step] = []
    for number, names in enumerate(stages):
        roll = update_steps(context, _listing(variable, names), from_revision + number, ROLL_SURGE, moved, names[0])
        # The forecast is checked once, at the end.
        steps += roll if number == len(stages) - 1 else roll[:-1]
    forecast = _cost_of_rolls(context, ({"to": to},) if has_both else ({"beside": to}, {"to": to}))
    return Migration(
        kind=ASSIGNOR,
        steps=tuple(steps),
        must_be_true=(
            f"the consumers take their assignors from {variable.name} alone",
            "every member is a Java client of 2.4 or later: librdkafka refuses a list that mixes protocols",
        ),
        why=(
            "One roll is enough, as every member has both assignors in its list."
            if has_both
            else f"Two rolls: {old} and {to} in every list first, then {to} alone; at once, members would have no "
            "assignor in common.",
        ),
        moved=moved,
        cost=None if isinstance(forecast, str) else forecast,
        unknowns=(forecast,) if isinstance(forecast, str) else (),
    )


def assignor_in_a_window(context: MigrationContext, to: str, change: TemplateChange, green: str) -> Migration:
    """Return the change to ``to`` for members that refuse mixed lists (librdkafka): stop all, start all."""
    _check(context, to)
    takeover = in_a_window(context, Green(green, change, to))
    moved = all_owned(context)
    return Migration(
        kind=ASSIGNOR,
        steps=takeover.steps,
        must_be_true=(f"the changed template makes every consumer assign by {to}", CONTENT),
        why=tuple(explain_choice(takeover, [takeover])),
        moved=moved,
        cost=known_cost(takeover.transition),
        unknowns=(takeover.unknown,) if takeover.unknown else (),
    )


def consumer_protocol(
    context: MigrationContext, change: TemplateChange, from_revision: int, to: str = "uniform"
) -> Migration:
    """Return the roll of a classic group to the consumer protocol, which ``change`` of the template brings (KIP-848).

    The first member that comes by the new protocol converts the group: the server's assignor ``to`` takes over for all.
    """
    if system_of(context.snapshot).members_allocate or to not in SERVER_ASSIGNORS:
        raise BadInputError(
            f"group {context.snapshot.group} on {context.snapshot.system} to {to}: expected a Kafka group and one of "
            f"{', '.join(SERVER_ASSIGNORS)}"
        )
    if context.strategy in SERVER_ASSIGNORS:
        raise BadInputError(
            f"group {context.snapshot.group} has the consumer protocol already: nothing is to be changed"
        )
    moved = all_owned(context)
    forecast = _cost_of_rolls(context, ({"to": to},))
    return Migration(
        kind=PROTOCOL,
        steps=update_steps(context, change, from_revision, ROLL_SURGE, moved, to),
        must_be_true=(
            "brokers are 4.0 or later with feature group.version 1",
            "group.consumer.migration.policy of the brokers allows upgrades",
            "clients are Java 4.0, librdkafka 2.12 or later, and set group.protocol=consumer",
            "partition.assignment.strategy, session.timeout.ms and heartbeat.interval.ms are no longer set",
            f"group.remote.assignor asks for {to.removesuffix('-server')}",
        ),
        why=(f"One roll, one member at a time: the first one converts the group, and {to} takes over for all.",),
        moved=moved,
        cost=None if isinstance(forecast, str) else forecast,
        unknowns=(forecast,) if isinstance(forecast, str) else (),
    )


def _listing(variable: Variable, assignors: tuple[str, ...]) -> TemplateChange:
    """Return the template change that sets the variable to these assignors, in this order."""
    value = ",".join(JAVA_ASSIGNORS[name] for name in assignors)
    return TemplateChange((ContainerChange(variable.container, env=(Setting(variable.name, value),)),))


def _check(context: MigrationContext, to: str) -> None:
    snapshot = context.snapshot
    if system_of(snapshot).members_allocate or context.strategy not in JAVA_ASSIGNORS:
        raise BadInputError(
            f"group {snapshot.group} on {snapshot.system} with {context.strategy}: expected a classic Kafka group"
        )
    if to not in JAVA_ASSIGNORS:
        raise UnknownNameError(f"assignor {to!r} is none of a client's: choose one of {', '.join(JAVA_ASSIGNORS)}")
    if to == context.strategy:
        raise BadInputError(f"group {snapshot.group} has assignor {to} already: nothing is to be changed")


def _check_java(context: MigrationContext, variable: Variable) -> None:
    timing = context.snapshot.timing
    if timing is not None and timing.client.startswith(LIBRDKAFKA):
        raise BadInputError(
            f"group {context.snapshot.group} has clients of {timing.client} (spec.timing of the policy), expected "
            f"Java's for rolls by variable {variable.name}, which gets names of Java classes: name a green Deployment "
            "and a change, so that all stop before any starts"
        )


def _cost_of_rolls(context: MigrationContext, lists: Sequence[Mapping[str, str]]) -> Cost | str:
    """Return what rolls cost whose new pods list these assignors, or in half a sentence why that is unknown.

    As ``update_steps`` carries them out, one after the other: the next one begins when the group has settled.
    """
    ready = context.ready_s(ROLL_SURGE)
    if ready is None:
        return _UNKNOWN_READY
    least, most = (roll_change(context, ROLL_SURGE, 0, ready_s) for ready_s in (ready.least, ready.most))
    costs = []
    for listed in lists:
        cost = forecast_change(context, (replace(least, **listed), replace(most, **listed)))
        if isinstance(cost, str):
            return cost
        costs.append(cost_of(cost))
    return costs_together(costs)
