"""Migration ``subscription``: a roll where members may be mixed, else all stop before any starts, else a refusal."""

from dataclasses import replace

import pytest

from planner.errors import BadInputError, RefusedError
from planner.forecast.kafka.request.changes import newcomers
from planner.model.membership import KafkaMember
from planner.rollout.migrations.migration import MigrationContext, read_context
from planner.rollout.migrations.requests import SubscriptionRequest
from planner.rollout.migrations.subscription import subscription
from planner.rollout.migrations.update import roll_change
from planner.rollout.steps import UpdateTemplate
from planner.rollout.steps.moves import MovedQueues
from planner.simulation.group_model import group_model
from planner.simulation.kafka.request import request
from tests.unit.rollout.test_migrations import CHANGE, SETTINGS, TIMING, at_rest, found, kafka, kinds

ALL_STOP = ["createDeployment", "stopConsumers"]


def asked(*topics: str, green: str | None = None, new_group: str | None = None, tags: str = "*") -> SubscriptionRequest:
    return SubscriptionRequest(to=dict.fromkeys(topics, tags), change=CHANGE, green=green, new_group=new_group)


def with_two_topics() -> MigrationContext:
    """Return a Kafka group that subscribes to t and u."""
    taken = kafka(timing=TIMING).snapshot
    more = tuple(replace(state, queue=replace(state.queue, topic="u")) for state in taken.queues)
    members = tuple(replace(member, topics=("t", "u")) for member in taken.members)
    changed = replace(taken, queues=(*taken.queues, *more), members=members)
    return read_context(at_rest(changed, revision=7), "d", SETTINGS)


def static(context: MigrationContext) -> MigrationContext:
    members: tuple[KafkaMember, ...] = tuple(
        replace(member, instance_id=f"pod-{member.member_id}") for member in context.snapshot.members
    )
    return replace(context, snapshot=replace(context.snapshot, members=members))


def test_kafka_members_come_with_other_topics_one_by_one() -> None:
    made = subscription(with_two_topics(), asked("t"))
    assert kinds(made) == ["updateTemplate", "awaitReady", "awaitSettled", "checkForecast"]
    (roll,) = (step for step in made.steps if isinstance(step, UpdateTemplate))
    assert (roll.max_surge, roll.max_unavailable) == (1, 0)
    assert made.cost is not None
    assert "nobody needs what then waits, and comes, in u for this group" in made.must_be_true
    assert not made.unknowns
    queues = len(with_two_topics().snapshot.data_queues)
    assert made.moved == MovedQueues(queues // 2, queues), "whether u is shown on, with nobody as owner, is not known"


def test_the_forecast_of_the_roll_has_the_new_topics() -> None:
    context = with_two_topics()
    change = group_model(context.snapshot).with_topics(roll_change(context, 1, 0, 5.0), ["t"])
    forecast = request(context.current, context.snapshot, 0, change)
    assert {member.topics for member in newcomers(forecast.change)} == {frozenset({"t"})}


def test_the_cost_of_a_topic_that_the_snapshot_lacks_is_unknown() -> None:
    context = read_context(at_rest(kafka(timing=TIMING).snapshot, revision=7), "d", SETTINGS)
    made = subscription(context, asked("t", "u"))
    assert made.cost is None
    assert any("planner forecast with change.kind subscription" in line for line in made.unknowns)
    assert any(line.startswith("the consumers begin u where they should") for line in made.must_be_true)


def test_kafka_refuses_tags_and_topics_that_are_there() -> None:
    with pytest.raises(BadInputError, match="filter nothing by tags"):
        subscription(kafka(), asked("t", tags="a"))
    with pytest.raises(BadInputError, match="subscribes to t already"):
        subscription(kafka(), asked("t"))


def test_static_members_stop_before_any_starts() -> None:
    with pytest.raises(RefusedError, match="keeps the assignment of one that comes back") as error:
        subscription(static(with_two_topics()), asked("t"))
    assert error.value.name == "MixedSubscriptions"
    made = subscription(static(with_two_topics()), asked("t", green="app-green"))
    assert kinds(made)[: len(ALL_STOP)] == ALL_STOP


def test_clients_of_rocketmq_are_never_mixed() -> None:
    topic = found().snapshot.data_queues[0].queue.topic
    with pytest.raises(RefusedError, match="by one client's tags, and messages that these leave out") as error:
        subscription(found(), asked(topic, tags="a || b"))
    assert "--green" in str(error.value)
    made = subscription(found(), asked(topic, tags="a || b", green="app-green"))
    assert kinds(made)[: len(ALL_STOP)] == ALL_STOP
    assert any("would mix two subscriptions" in line for line in made.why)
    assert any(f"{topic} (a || b)" in line for line in made.must_be_true)


def test_a_mixture_of_topics_is_refused_with_the_queues_that_nobody_would_read() -> None:
    with pytest.raises(RefusedError) as error:
        subscription(found(), asked("refunds"))
    count = len(found().snapshot.data_queues)
    assert f"with 2 of 4 members on the new one, {count // 2} of {count} queues of " in str(error.value)


def test_a_second_group_is_weighed() -> None:
    topic = found().snapshot.data_queues[0].queue.topic
    made = subscription(found(), asked(topic, tags="a", green="app-green", new_group="g2"))
    assert any("both groups side by side" in line for line in made.why)


@pytest.mark.parametrize(
    ("to", "green", "new_group"), [({}, None, None), ({"t": ""}, None, None), ({"t": "*"}, None, "g")]
)
def test_what_asks_for_nothing_is_refused(to: dict[str, str], green: str | None, new_group: str | None) -> None:
    with pytest.raises(ValueError, match=r"at least one topic|a green Deployment"):
        SubscriptionRequest(to=to, change=CHANGE, green=green, new_group=new_group)
