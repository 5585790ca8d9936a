"""Migrations: each kind's steps in order, what it costs by the simulation, and what is refused by name."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from planner.decision.prices import Prices
from planner.documents.plan import PLAN
from planner.errors import BadInputError, RefusedError, UnknownNameError
from planner.execution.checks import SETTLED_APART
from planner.model.autoscalers import Autoscaler
from planner.model.membership import KafkaMember
from planner.model.queues import MessageQueue, TopicPartition
from planner.model.snapshot import GroupSnapshot, KafkaTiming, QueueState, SeriesPoint
from planner.rollout.explain import explain_plan
from planner.rollout.migrations.cluster import cluster
from planner.rollout.migrations.expand import expand
from planner.rollout.migrations.green import EMPTY_S, Green
from planner.rollout.migrations.kafka import assignor, assignor_in_a_window, consumer_protocol
from planner.rollout.migrations.migration import Migration, MigrationContext, plan_of, read_context
from planner.rollout.migrations.relocate import relocate
from planner.rollout.migrations.rename import rename
from planner.rollout.migrations.requests import ResetMessages, ResetRequest, Variable
from planner.rollout.migrations.reset import reset
from planner.rollout.migrations.shrink import shrink
from planner.rollout.migrations.strategy import strategy
from planner.rollout.migrations.update import update
from planner.rollout.settings import RolloutSettings
from planner.rollout.steps import AwaitLag, AwaitSettled, MovedQueues, PauseForPerson, ResetOffsets, UpdateTemplate
from planner.rollout.template import ContainerChange, Setting, TemplateChange
from tests.builders import AT, clients, queues, snapshot
from tests.unit.rollout.test_victims import in_pods

SETTINGS = RolloutSettings("billing", "app")
CHANGE = TemplateChange((ContainerChange("app", image="shop:2"),))
STARTED = AT - timedelta(hours=1)
TIMING, NO_JAVA = KafkaTiming("4.4.0", "4.3.1", 0.002), KafkaTiming("librdkafka 2.16.1", "4.3.1", 0.002)
NEARBY = "MACHINE_ROOM_NEARBY"
BROKERS = {"broker-a": "r", "broker-b": "s"}


def at_rest(taken: GroupSnapshot, **changes: Any) -> GroupSnapshot:
    """Return the snapshot in pods that took 8 s and a little more to be ready, each on a node of its own."""
    made, count = in_pods(taken), len(taken.clients)
    assert made.deployment
    assert made.deployment.pods
    pods = tuple(
        replace(pod, node=f"n{number}", started_at=STARTED, ready_at=STARTED + timedelta(seconds=8 + number))
        for number, pod in enumerate(made.deployment.pods)
    )
    counts = dict.fromkeys(("replicas", "current", "updated", "ready", "available"), count)
    return replace(made, deployment=replace(made.deployment, pods=pods, **{**counts, **changes}))


def found(count: int = 4, settings: RolloutSettings = SETTINGS, **changes: Any) -> MigrationContext:
    return read_context(at_rest(replace(snapshot(clients=clients(count)), **changes)), "d", settings)


def kafka(
    name: str = "range", lists: tuple[str, ...] | None = None, timing: KafkaTiming | None = None
) -> MigrationContext:
    ids = ("a", "b", "c")
    members = tuple(KafkaMember(one, one, "10.0.0.1", None, None, ("t",), lists or (name,)) for one in ids)
    states = tuple(QueueState(TopicPartition("t", n), 9, 9, 0, 5.0, 6.0, 5.0, ids[n // 2]) for n in range(6))
    taken = snapshot(clients=ids)
    taken = replace(taken, system="kafka", strategy=name, members=members, queues=states, setups=())
    return read_context(at_rest(replace(taken, timing=timing)), "d", SETTINGS)


def to(name: str, options: dict[str, Any] | None = None, room: str | None = None) -> Green:
    return Green("app-green", CHANGE, name, None, options or None, room)


def kinds(migration: Migration) -> list[str]:
    return [step.kind for step in migration.steps]


ROLL = ["updateTemplate", "awaitReady", "awaitSettled"]
STOP = ["stopConsumers", "awaitReady", "awaitSettled"]
START = ["startConsumers", "awaitReady", "awaitSettled"]


def test_an_update_takes_the_batch_that_costs_least_and_tells_kubernetes_default_beside_it() -> None:
    made = update(found(), CHANGE, from_revision=3)
    assert kinds(made) == [*ROLL, "checkForecast"]
    (roll,) = (step for step in made.steps if isinstance(step, UpdateTemplate))
    assert (roll.replicas, roll.max_unavailable, roll.from_revision) == (4, 0, 3)
    assert made.cost is not None
    assert made.cost.pause_seconds is not None
    # One pod, all four, and the default of one more and one less: a quarter of four is one.
    assert len(made.why) == 3
    assert made.why[0].startswith(f"Chosen: {roll.max_surge} more and 0 fewer pods at once: longest pause ")
    assert any(line.startswith("Not 1 more and 1 fewer pods at once: ") for line in made.why)


def test_the_update_is_the_one_whose_cost_is_lowest_at_its_upper_end() -> None:
    for price in (0.0, 1.0, 100.0):
        told = update(found(settings=replace(SETTINGS, prices=Prices(duplicate_s=price))), CHANGE, 1).why
        # The last one is Kubernetes' default, which leaves fewer consumers than there are: never taken.
        uppers = [int(re.findall(r"[0-9]+", line.rpartition("worth ")[2].replace(",", ""))[-1]) for line in told[:-1]]
        assert uppers[0] == min(uppers)


def test_where_no_pod_tells_how_long_it_takes_the_fewest_rebalances_win_and_the_plan_says_so() -> None:
    taken = at_rest(snapshot(clients=clients(4)))
    assert taken.deployment
    young = tuple(replace(pod, ready_at=None) for pod in taken.deployment.pods or ())
    untold = read_context(replace(taken, deployment=replace(taken.deployment, pods=young)), "d", SETTINGS)
    made = update(untold, CHANGE, 1)
    assert made.cost is None
    assert made.unknowns == ("how long a pod takes until it is ready: none of the present ones shows it",)
    assert [step.max_surge for step in made.steps if isinstance(step, UpdateTemplate)] == [4]


def seconds_until_ready(at_once: int, *pods: tuple[str | None, int, int]) -> tuple[float, float] | None:
    """Return how long a pod takes, by pods on these nodes that started and were ready at these seconds."""
    one = found(len(pods))
    known = zip(one.deployment.pods or (), pods, strict=True)
    timed = tuple(
        replace(
            pod, node=node, started_at=STARTED + timedelta(seconds=start), ready_at=STARTED + timedelta(seconds=end)
        )
        for pod, (node, start, end) in known
    )
    span = replace(one, deployment=replace(one.deployment, pods=timed)).ready_s(at_once)
    return (span.least, span.most) if span else None


def test_pods_that_started_together_on_one_node_tell_a_lone_one_no_more_than_its_share() -> None:
    """As seen: three JVMs took 9, 9 and 10 s together on two processors, and 3 to 4 s each, one after the other."""
    together = [("n", 0, 9), ("n", 0, 9), ("n", 0, 10)]
    assert seconds_until_ready(1, *together) == pytest.approx((8 / 3, 11))
    assert seconds_until_ready(2, *together) == pytest.approx((8 / 1.5, 11))
    assert seconds_until_ready(3, *together) == seconds_until_ready(9, *together) == (8, 11)
    # Whole seconds: 9 are 8 to 10. Other nodes, or other times, share nothing; of unknown nodes nobody knows.
    assert seconds_until_ready(1, ("n", 0, 9), ("m", 0, 9), ("n", 9, 18)) == (8, 10)
    assert seconds_until_ready(1, (None, 0, 9), (None, 4, 14)) == (4, 11)
    assert seconds_until_ready(1, ("n", 5, 5), ("m", 0, 1)) == (0, 2)


@pytest.mark.parametrize(("changes", "surge"), [({}, 0), ({"grace_s": 0}, None)])
def test_an_orderly_group_is_not_left_to_locks_of_the_dead(changes: dict[str, Any], surge: int | None) -> None:
    taken = at_rest(replace(snapshot(clients=clients(4)), orderly=True), **changes)
    with pytest.raises(RefusedError, match="consumes in order") as refused:
        update(read_context(taken, "d", SETTINGS), CHANGE, 1, surge)
    assert refused.value.name == "OrderlyWithoutSurge"


@pytest.mark.parametrize(
    "migrate",
    [
        lambda one: strategy(one, to("AVG_BY_CIRCLE")),
        lambda one: rename(one, "billing-2", CHANGE, "g"),
        lambda one: relocate(one, CHANGE, "g"),
    ],
)
def test_no_pod_of_an_orderly_group_is_killed_at_once(migrate: Callable[[MigrationContext], Migration]) -> None:
    orderly = replace(snapshot(clients=clients(4)), orderly=True)
    with pytest.raises(RefusedError, match="kills its pods at once"):
        migrate(read_context(at_rest(orderly, grace_s=0), "d", SETTINGS))
    assert migrate(read_context(at_rest(orderly), "d", SETTINGS)).steps


def test_a_group_whose_pods_are_killed_is_forecast_to_lose_what_was_not_stored() -> None:
    kind, killed = found(), read_context(at_rest(snapshot(clients=clients(4)), grace_s=0), "d", SETTINGS)
    costs = [strategy(one, to("AVG_BY_CIRCLE")).cost for one in (kind, killed)]
    assert costs[0] is not None
    assert costs[1] is not None
    assert costs[0] != costs[1]


def test_a_strategy_changes_while_nobody_consumes() -> None:
    made = strategy(found(), to("AVG_BY_CIRCLE"))
    assert kinds(made) == ["createDeployment", *STOP, *START, "checkForecast"]
    assert "queues have two owners" in made.why[0]
    assert made.cost is not None
    assert made.cost.pause_seconds is not None
    # As long as a pod takes to be ready at least, 8 s of the quickest one, after nobody was seen twice.
    assert EMPTY_S.least == SETTLED_APART.total_seconds()
    pause_s = made.cost.pause_seconds
    assert 8 + EMPTY_S.least < pause_s.p05 < pause_s.p50 < 12 + EMPTY_S.most + 5
    assert pause_s.p95 < 12 + EMPTY_S.most + 5 + 30  # one of four that start may lose a heartbeat and wait for the next


def test_two_groups_side_by_side_are_taken_where_that_costs_less() -> None:
    def changed(settings: RolloutSettings = SETTINGS, **changes: Any) -> Migration:
        return strategy(found(settings=settings, **changes), to("AVG_BY_CIRCLE"), "billing-2")

    assert kinds(changed()) == ["createDeployment", *STOP, *START, "checkForecast"]
    assert any(line.startswith("Not both groups side by side: a pause of 0 s, ") for line in changed().why)
    # What comes twice is free and the limits are short: then four more consumers are better than four that stand still.
    free = RolloutSettings("billing", "app", ready_limit_s=1, settled_limit_s=1, prices=Prices(duplicate_s=0.0))
    beside = changed(free)
    assert kinds(beside) == ["createDeployment", "cloneOffsets", *START, *STOP, "checkForecast"]
    assert beside.why[1].startswith("Chosen: both groups side by side")
    assert (beside.cost, len(beside.unknowns)) == (None, 1)
    # Two groups at a time break the order.
    assert "stopConsumers" in kinds(changed(free, orderly=True))[1]


CIRCLE_CLASS = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle"


@pytest.mark.parametrize(
    "change",
    [
        ContainerChange("main", env=(Setting("ALLOCATION_STRATEGY", "AVG_BY_CIRCLE"),)),
        ContainerChange("main", env=(Setting("REBALANCE_CLASS", CIRCLE_CLASS),)),
        ContainerChange("main", arguments=("--threads=4", "--strategy=AVG_BY_CIRCLE")),
    ],
    ids=["variable", "class", "argument"],
)
def test_the_naive_change_of_strategy_is_refused_with_what_it_would_do(change: ContainerChange) -> None:
    with pytest.raises(RefusedError, match=r"2 of 4 members on AVG_BY_CIRCLE, \d+ queues have two owners") as refused:
        update(found(), TemplateChange((change,)), 7)
    assert refused.value.name == "SplitBrain"


@pytest.mark.parametrize(
    "setting", [Setting("ALLOCATION_STRATEGY", "AVG"), Setting("METRIC", "AVG_BY_CIRCLE")], ids=str
)
def test_a_template_that_names_the_same_strategy_or_something_else_rolls(setting: Setting) -> None:
    made = update(found(), TemplateChange((ContainerChange("main", env=(setting,)),)), 7)
    assert "the changed template leaves the allocation strategy as it is" in made.must_be_true


def test_a_group_gets_another_name_by_cloned_offsets_that_a_person_confirms() -> None:
    ground_of = found()
    made = rename(ground_of, "billing-2", CHANGE, "app-green")
    assert kinds(made) == ["createDeployment", *STOP, "cloneOffsets", *START, "checkForecast"]
    plan = plan_of(made, ground_of, AT)
    assert plan.migration == "rename"
    assert plan.confirmations == ("stop all consumers of billing", "set the offsets of billing-2")


def test_another_deployment_takes_over_beside_the_old_one() -> None:
    made = relocate(found(), CHANGE, "app-green")
    assert kinds(made) == ["createDeployment", *START, *STOP, "checkForecast"]
    assert made.cost is not None
    assert made.moved.fewest == made.moved.most == 16


@pytest.mark.parametrize(
    ("strategy_name", "options", "name"),
    [
        ("MACHINE_ROOM", {"consumer_rooms": ["r1"]}, "SplitBrain"),
        (
            "MACHINE_ROOM_NEARBY-AVG",
            {
                "machine_rooms": {
                    "brokers": {"broker-a": "r", "broker-b": "r"},
                    "clients": dict.fromkeys(clients(4), "r"),
                }
            },
            "UnknownStrategy",
        ),
    ],
)
def test_rooms_are_not_mixed(strategy_name: str, options: dict[str, Any], name: str) -> None:
    with pytest.raises(RefusedError) as refused:
        relocate(found(strategy=strategy_name, strategy_options=options), CHANGE, "app-green")
    assert refused.value.name == name


def test_consumers_are_there_before_the_queues_that_a_person_raises() -> None:
    made = expand(found(), "orders", each=12, consumers=6)
    assert kinds(made) == [*START, "pauseForPerson", "awaitSettled", "checkForecast"]
    ask = next(step for step in made.steps if isinstance(step, PauseForPerson))
    assert ask.question == (
        "Does topic orders have 12 read queues, and after them 12 write queues, on each of broker-a, broker-b now?"
    )
    assert made.cost is not None
    # AVG, 6 members: shares of 3 3 3 3 2 2 become 4 each. a3, a6, a7, b0, b6 and b7 get another owner.
    assert made.why[0].startswith("Consumers first, then queues: orders gets 8 more, and 6 of those that are there ")
    assert kinds(expand(found(), "orders", each=12)) == ["pauseForPerson", "awaitSettled", "checkForecast"]


def test_partitions_are_raised_all_together() -> None:
    made = expand(kafka(), "t", each=8)
    ask = next(step for step in made.steps if isinstance(step, PauseForPerson))
    assert ask.question == "Does topic t have 8 partitions now?"


def test_queues_are_emptied_before_nobody_reads_them() -> None:
    made = shrink(found(), "orders", each=3)
    assert kinds(made) == ["pauseForPerson", "awaitLag", "pauseForPerson", "awaitSettled", "checkForecast"]
    leave, drained, drop = made.steps[:3]
    assert isinstance(leave, PauseForPerson)
    assert isinstance(drop, PauseForPerson)
    assert leave.question == (
        "Has topic orders had 3 write queues on each of broker-a, broker-b for a minute, its read queues as before?"
    )
    assert isinstance(drained, AwaitLag)
    assert (drained.messages, drained.queues) == (0, ("orders/broker-a/3-7", "orders/broker-b/3-7"))
    assert drop.question.startswith("Has every other group that consumes orders worked off orders/broker-a/3-7, ")
    # AVG, 4 members: 16 queues as 4 each become 6 as 2 2 1 1: a0 and a1 stay with c0, a2 and b0 go to c1, b1 to c2.
    before = {owned.queue: owned.owner for owned in found().current.owners}
    after = dict(zip([*(f"a{n}" for n in range(3)), *(f"b{n}" for n in range(3))], "001123", strict=True))
    owners = sorted(set(before.values()))
    moved = sum(
        before[MessageQueue("orders", f"broker-{name[0]}", int(name[1]))] != owners[int(member)]
        for name, member in after.items()
    )
    assert made.moved == MovedQueues(moved, moved)
    assert made.cost is not None


def test_of_unequal_brokers_only_those_are_lowered_that_have_more() -> None:
    context = found()
    fewer = tuple(
        state for state in context.snapshot.queues if state.queue.place[1] == "broker-a" or state.queue.number < 2
    )
    made = shrink(found(queues=fewer), "orders", each=4)
    assert isinstance(made.steps[1], AwaitLag)
    assert made.steps[1].queues == ("orders/broker-a/4-7",)


@pytest.mark.parametrize(
    ("context", "topic", "each", "error", "sentence"),
    [
        (kafka, "t", 3, BadInputError, "takes no partition away"),
        (found, "orders", 8, BadInputError, "has 8 queues on a broker at most: expected fewer than that, not 8"),
        (found, "orders", 0, BadInputError, "expected 1 or more"),
        (found, "bills", 4, UnknownNameError, "it consumes orders"),
        (lambda: found(8), "orders", 3, RefusedError, "with 6 queues 2 of 8 consumers would own none"),
    ],
)
def test_queues_that_cannot_be_given_up_are_refused(
    context: Callable[[], MigrationContext], topic: str, each: int, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        shrink(context(), topic, each)


def test_too_few_queues_for_what_comes_in_are_refused() -> None:
    busy = found()
    states = tuple(replace(state, arrival_rate=20.0, upper_arrival_rate=21.0) for state in busy.snapshot.queues)
    # 16 queues x 20/s over 4 consumers that do 100/s each: 80 % busy. With 2 queues each there are 4; with 3 on each
    # broker two consumers have two of six queues, 107/s.
    with pytest.raises(RefusedError, match="gets more than it can do") as refused:
        shrink(found(queues=states), "orders", each=3)
    assert refused.value.name == "TooFewQueues"
    shrink(found(queues=states), "orders", each=4)


def test_consumers_for_whom_there_is_nothing_to_do_are_refused() -> None:
    with pytest.raises(RefusedError, match="with 24 queues 13 consumers relieve nobody whom 12 would not") as refused:
        expand(found(), "orders", each=12, consumers=13)
    assert refused.value.name == "MoreConsumersThanUseful"


def test_an_eager_kafka_group_becomes_cooperative_in_two_rolls() -> None:
    made = assignor(kafka(), "cooperative-sticky", Variable("app", "ASSIGNORS"), from_revision=5)
    assert kinds(made) == [*ROLL, *ROLL, "checkForecast"]
    rolls = [step for step in made.steps if isinstance(step, UpdateTemplate)]
    assert [step.from_revision for step in rolls] == [5, 6]
    values = [step.change.containers[0].env[0].value for step in rolls]
    assert [value.count(",") for value in values] == [1, 0]
    assert values[0].endswith("CooperativeStickyAssignor")
    assert values[1].endswith("CooperativeStickyAssignor")
    assert [step.strategy for step in made.steps if step.kind == "awaitSettled"] == ["range", "cooperative-sticky"]


def test_what_two_rolls_cost_is_forecast_of_pods_that_start_before_others_stop_one_roll_after_the_other() -> None:
    """A roll of three pods that take 8 to 11 s until they are ready."""
    grounds = {lists: kafka(lists=lists, timing=TIMING) for lists in (("range",), ("range", "cooperative-sticky"))}
    two, one = (assignor(each, "cooperative-sticky", Variable("app", "A"), 5).cost for each in grounds.values())
    assert two is not None
    assert one is not None
    assert two.settle_seconds is not None
    assert one.settle_seconds is not None
    assert 2 * 3 * (8 - 1) < two.settle_seconds.p05 < two.settle_seconds.p95 < 2 * 3 * (11 + 2)
    assert 3 * (8 - 1) < one.settle_seconds.p05 < one.settle_seconds.p95 < 3 * (11 + 2)
    assert two.pause_seconds is not None
    assert two.pause_seconds.p95 < 5, "a partition is paused while nobody has it, and others have it on its way"


def test_one_roll_is_enough_where_every_list_has_both() -> None:
    both = kafka(lists=("range", "cooperative-sticky"))
    made = assignor(both, "cooperative-sticky", Variable("app", "ASSIGNORS"), 5)
    assert kinds(made) == [*ROLL, "checkForecast"]


def test_clients_that_refuse_mixed_lists_stop_before_any_starts() -> None:
    made = assignor_in_a_window(kafka(), "cooperative-sticky", CHANGE, "app-green")
    assert kinds(made) == ["createDeployment", *STOP, *START, "checkForecast"]


def test_the_consumer_protocol_comes_in_one_roll_of_new_pods_before_old_ones_whose_cost_is_forecast() -> None:
    made = consumer_protocol(kafka(timing=TIMING), CHANGE, 1)
    assert kinds(made) == [*ROLL, "checkForecast"]
    assert made.unknowns == ()
    assert made.cost is not None
    assert made.cost.settle_seconds is not None
    assert made.cost.settle_seconds.p05 > 3 * (8 - 1)


def test_the_consumer_protocol_of_clients_that_do_not_know_it_has_no_forecast_and_says_why() -> None:
    made = consumer_protocol(kafka(timing=KafkaTiming("3.9.2", "4.3.1", 0.002)), CHANGE, 1)
    assert made.cost is None
    assert any("found uniform with client 3.9.2" in unknown for unknown in made.unknowns)


EVERY: list[tuple[Callable[[], MigrationContext], Callable[[MigrationContext], Migration]]] = [
    (found, lambda one: update(one, CHANGE, 1)),
    (found, lambda one: strategy(one, to("AVG_BY_CIRCLE"), "billing-2")),
    (found, lambda one: strategy(one, to("CONSISTENT_HASH", {"virtual_nodes": 3}))),
    (found, lambda one: strategy(one, to(NEARBY, {"machine_rooms": {"brokers": BROKERS, "clients": {}}}, "s"))),
    (found, lambda one: rename(one, "billing-2", CHANGE, "green")),
    (found, lambda one: relocate(one, CHANGE, "green")),
    (found, lambda one: expand(one, "orders", 12, 6)),
    (kafka, lambda one: assignor(one, "sticky", Variable("app", "ASSIGNORS"), 1)),
    (kafka, lambda one: consumer_protocol(one, CHANGE, 1)),
]


@pytest.mark.parametrize(("made_for", "migrate"), EVERY)
def test_every_migration_is_a_plan_that_is_read_back_and_told(
    made_for: Callable[[], MigrationContext], migrate: Callable[[MigrationContext], Migration]
) -> None:
    ground_of = made_for()
    migration = migrate(ground_of)
    assert migration == migrate(ground_of)
    plan = plan_of(migration, ground_of, AT)
    assert PLAN.parse(PLAN.document(plan, "billing-1"), "plan.yaml") == plan
    lines = list(explain_plan(plan))
    assert all(any(must in line for line in lines) for must in migration.must_be_true)
    assert sum(line.startswith("Step ") for line in lines) == len(plan.steps)


@pytest.mark.parametrize(
    ("taken", "name"),
    [
        (snapshot(), "NotAtRest"),
        (at_rest(snapshot(), ready=2), "NotAtRest"),
        (at_rest(snapshot(), updated=1), "NotAtRest"),
        (at_rest(snapshot(), replicas=4), "NotAtRest"),
        (at_rest(replace(snapshot(), members_per_pod=4)), "SeveralMembersAPod"),
        (at_rest(replace(snapshot(), members_per_pod=None)), "SeveralMembersAPod"),
        (at_rest(snapshot(), autoscalers=(Autoscaler("HorizontalPodAutoscaler", "hpa", 1, 9),)), "OtherScaler"),
        (at_rest(snapshot(), autoscalers=None), "OtherScaler"),
        (replace(at_rest(snapshot()), strategy="CONFIG"), "UnknownStrategy"),
    ],
)
def test_no_migration_of_what_is_not_at_rest_or_not_ours(taken: GroupSnapshot, name: str) -> None:
    with pytest.raises(RefusedError) as refused:
        read_context(taken, "d", SETTINGS)
    assert refused.value.name == name


@pytest.mark.parametrize(
    ("attempt", "error", "words"),
    [
        (lambda: strategy(found(), to("AVG")), BadInputError, "has strategy AVG already"),
        (lambda: strategy(found(), to("NONE")), UnknownNameError, "choose one of"),
        (lambda: strategy(kafka(), to("AVG")), BadInputError, "is a Kafka group"),
        (lambda: rename(found(), "billing", CHANGE, "g"), BadInputError, "has this name already"),
        (lambda: assignor(found(), "range", Variable("a", "A"), 1), BadInputError, "expected a classic Kafka group"),
        (lambda: assignor(kafka(), "range", Variable("a", "A"), 1), BadInputError, "has assignor range already"),
        (lambda: assignor(kafka(), "uniform", Variable("a", "A"), 1), UnknownNameError, "choose one of"),
        (
            lambda: assignor(kafka(timing=NO_JAVA), "sticky", Variable("a", "A"), 1),
            BadInputError,
            "clients of librdkafka 2.16.1",
        ),
        (lambda: consumer_protocol(kafka("uniform"), CHANGE, 1), BadInputError, "consumer protocol already"),
        (lambda: consumer_protocol(found(), CHANGE, 1), BadInputError, "expected a Kafka group"),
        (lambda: expand(found(), "bills", 9), UnknownNameError, "it consumes orders"),
        (lambda: expand(found(), "orders", 8), BadInputError, "has 8 queues in one place already"),
        (lambda: expand(found(), "orders", 9, 3), BadInputError, "expected as many or more, not 3"),
    ],
)
def test_wrong_wishes_get_one_sentence(attempt: Callable[[], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        attempt()


def test_a_group_on_another_cluster_starts_there_first_and_stops_once_the_old_one_is_drained() -> None:
    ground_of = found()
    made = cluster(ground_of, "cluster-b", CHANGE, "app-green")
    drain = ["awaitLag", "stopConsumers", "awaitReady", "awaitSettled"]
    start = ["startConsumers", "awaitReady"]
    assert [step.kind for step in made.steps] == [
        "createDeployment",
        *start,
        "pauseForPerson",
        *drain,
        "checkForecast",
    ]
    (question,) = (step.question for step in made.steps if isinstance(step, PauseForPerson))
    assert question.startswith("Do the consumers of app-green own every queue of group billing in cluster cluster-b")
    plan = plan_of(made, ground_of, AT)
    assert plan.confirmations == (), "no offset is carried over"
    assert any("what the group does in cluster cluster-b" in line for line in plan.forecast.unknowns)


def test_an_orderly_group_starts_on_another_cluster_once_the_old_one_is_drained() -> None:
    made = cluster(found(orderly=True), "cluster-b", CHANGE, "app-green")
    order = [step.kind for step in made.steps]
    assert order.index("awaitLag") < order.index("stopConsumers") < order.index("startConsumers")
    with pytest.raises(BadInputError, match="is in cluster DefaultCluster already"):
        cluster(found(), "DefaultCluster", CHANGE, "app-green")


def test_what_cloned_offsets_leave_behind_is_for_somebody_to_see_to() -> None:
    free = RolloutSettings("billing", "app", ready_limit_s=1, settled_limit_s=1, prices=Prices(duplicate_s=0.0))
    beside = strategy(found(settings=free), to("AVG_BY_CIRCLE"), "billing-2")
    assert any("wait for redelivery to group billing" in line for line in beside.must_be_true)
    window = strategy(found(), to("AVG_BY_CIRCLE"), "billing-2")
    assert not any("redelivery" in line for line in window.must_be_true), "the group keeps its retry topic"
    kafka_one = rename(kafka(), "k2", CHANGE, "g")
    assert not any("redelivery" in line for line in kafka_one.must_be_true)


def test_a_group_is_set_back_while_nobody_consumes_and_a_person_types_what_is_done() -> None:
    made = reset(found(), ResetRequest(to=AT - timedelta(hours=1)))
    assert kinds(made) == [*STOP, "resetOffsets", *START, "checkForecast"]
    plan = plan_of(made, found(), AT)
    assert plan.confirmations == ("stop all consumers of billing", "set the offsets of billing")
    assert plan.forecast.cost is None, "nobody knows how many messages come again"
    with pytest.raises(BadInputError, match="that is after the snapshot"):
        reset(found(), ResetRequest(to=AT + timedelta(hours=1)))


def lagging(lags: dict[MessageQueue, int], recent: tuple[SeriesPoint, ...] = ()) -> MigrationContext:
    taken = replace(snapshot(clients=clients(4), lags=lags), recent=recent)
    return read_context(at_rest(taken), "d", SETTINGS)


def reset_words(context: MigrationContext, request: ResetRequest) -> tuple[str, str]:
    """Return what the reset's step does, and what it says of messages that come again or are left out."""
    made = reset(context, request)
    (step,) = (step for step in made.steps if isinstance(step, ResetOffsets))
    figures = made.why[1].removeprefix(f"By the snapshot of {AT:%Y-%m-%d %H:%M:%S %Z}, messages that come again: ")
    changing = " What arrives or is consumed until the group has stopped changes that."
    return step.action.removeprefix("set the offsets of billing"), figures.removesuffix(changing)


def test_a_reset_says_beforehand_how_many_messages_come_again_and_how_many_are_left_out() -> None:
    lags = {queue: 10 * number for number, queue in enumerate(queues())}
    context, second = lagging(lags), queues()[1]
    consumed = {state.queue: state.consumer_offset or 0 for state in context.snapshot.data_queues}
    assert reset_words(context, ResetRequest(to="latest")) == (
        " to the latest, behind all messages that have arrived",
        f"none; messages that are left out: {sum(lags.values()):,}.",
    )
    assert reset_words(context, ResetRequest(to="earliest", topic="orders")) == (
        " on topic orders to the earliest messages that the brokers keep",
        f"at most {sum(consumed.values()):,}; messages that are left out: none.",
    )
    assert reset_words(context, ResetRequest(to=consumed[second] - 7, queue=str(second))) == (
        f" on queue {second} to offset {consumed[second] - 7}",
        "at most 7; messages that are left out: none.",
    )
    ahead = ResetRequest(to=consumed[second] + 4, queue=str(second))
    assert reset_words(context, ahead)[1] == "none; messages that are left out: 4."
    with pytest.raises(BadInputError, match="its next message gets"):
        reset(context, ResetRequest(to=consumed[second] + 11, queue=str(second)))
    with pytest.raises(UnknownNameError, match="does not consume topic 'order': it has orders"):
        reset(context, ResetRequest(to="latest", topic="order"))


def test_a_reset_says_what_the_brokers_said_where_somebody_asked_them() -> None:
    said = ResetMessages(at=AT, repeated=1_200, skipped=0, oldest_repeated_s=7_300.0, unknowns=("what of t/1",))
    made = reset(found(), ResetRequest(to="earliest", brokers=said))
    assert (
        "messages that come again: 1,200, the oldest about 2 h 2 min old; messages that are left out: none."
        in (made.why[1])
    )
    assert made.why[1].startswith("By the brokers at ")
    assert made.unknowns == ("what of t/1",)


def test_a_reset_to_a_time_goes_by_the_recent_past_and_says_unknown_before_it() -> None:
    lags, minute = dict.fromkeys(queues(), 10), AT - timedelta(minutes=1)
    points = tuple(
        SeriesPoint(AT - timedelta(minutes=9 - n), 60.0, 160.0, 160.0, 0, 3, 0, is_gap=False) for n in range(10)
    )
    ages = f"What comes again arrived since {minute:%Y-%m-%d %H:%M:%S %Z}, what is left out is older."
    assert reset_words(lagging(lags, points), ResetRequest(to=minute))[1] == (
        f"about 9,440–9,600; messages that are left out: about 0–160. {ages}"
    )
    unknown = "how many messages come again: the snapshot's past does not show what arrived since then on these queues"
    gap = (*points[:-1], replace(points[-1], is_gap=True))
    for context, to in ((lagging(lags, points), AT - timedelta(days=3)), (lagging(lags, gap), minute)):
        assert reset_words(context, ResetRequest(to=to))[1].startswith(
            "unknown; messages that are left out: at most 160."
        )
        assert reset(context, ResetRequest(to=to)).unknowns == (unknown,)


def rooms(*homes: str) -> dict[str, Any]:
    """Return the options of a group of as many members as there are homes."""
    homed = dict(zip(clients(len(homes)), homes, strict=True))
    return {"machine_rooms": {"brokers": BROKERS, "clients": homed, "inner": "AVG"}}


def awaited(made: Migration) -> list[AwaitSettled]:
    return [step for step in made.steps if isinstance(step, AwaitSettled)]


@pytest.mark.parametrize(
    ("name", "options", "room"),
    [
        ("CONSISTENT_HASH", {"virtual_nodes": 3}, None),
        ("CONSISTENT_HASH", {}, None),
        (NEARBY, {"machine_rooms": {"brokers": BROKERS, "clients": {}}}, "s"),
        ("VIP", {"vip_queues": [], "vip_clients": ["a"]}, None),
        ("SPECIFIED_MACHINE", {"hosts": ["10.0.0.1"]}, None),
        ("STATIC", {"reserved": {}}, None),
    ],
)
def test_a_step_says_the_parameters_that_new_members_bring(
    name: str, options: dict[str, Any], room: str | None
) -> None:
    made = strategy(found(), to(name, options, room))
    assert kinds(made) == ["createDeployment", *STOP, *START, "checkForecast"]
    stopped, started = awaited(made)
    assert (stopped.members, stopped.options) == (0, None)
    assert (started.strategy, started.options, started.new_room) == (name, options or None, room)
    policy = "spec.strategy and spec.strategyOptions of the policy say the same from then on"
    assert (policy in made.must_be_true) is bool(options)
    assert ("every green consumer runs in machine room s" in made.must_be_true) is (room == "s")


def test_the_same_strategy_with_other_parameters_is_a_change_too() -> None:
    now = found(strategy="CONSISTENT_HASH", strategy_options={"virtual_nodes": 10})
    made = strategy(now, to("CONSISTENT_HASH", {"virtual_nodes": 20}))
    assert awaited(made)[-1].options == {"virtual_nodes": 20}
    with pytest.raises(BadInputError, match="has strategy CONSISTENT_HASH already"):
        strategy(now, to("CONSISTENT_HASH", {"virtual_nodes": 10}))


@pytest.mark.parametrize(
    ("wish", "error", "words"),
    [
        (("CONFIG", {"config": {}}), RefusedError, "lists the queues of each member by its id"),
        (("MACHINE_ROOM", {"consumer_rooms": ["r1"]}), RefusedError, "16 of 16 queues .* would have no owner"),
        (("CONSISTENT_HASH", {"virtual_nodes": 0}), RefusedError, "16 of 16 queues .* would have no owner"),
        (
            (NEARBY, {"machine_rooms": {"brokers": BROKERS, "clients": {}}}),
            BadInputError,
            "found no machine room for strategy",
        ),
        ((NEARBY, {"machine_rooms": {"brokers": {}, "clients": {}}}, "s"), BadInputError, "no room for broker"),
        ((NEARBY, {}, "s"), BadInputError, "options.machine_rooms"),
        (("AVG_BY_CIRCLE", {}, "s"), BadInputError, "found machine room s for strategy AVG_BY_CIRCLE, expected none"),
        (("AVG_BY_CIRCLE", {"virtual_nodes": 3}), BadInputError, "options"),
    ],
)
def test_parameters_under_which_nobody_could_see_it_settle_are_refused(
    wish: tuple[Any, ...], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        strategy(found(), to(*wish))


def test_a_group_that_goes_by_rooms_moves_into_the_room_that_is_named() -> None:
    options = rooms("r", "r", "r", "r")
    ground_of = found(strategy=NEARBY, strategy_options=options)
    made = relocate(ground_of, CHANGE, "app-green", "s")
    assert kinds(made) == ["createDeployment", *START, *STOP, "checkForecast"]
    assert {(step.strategy, step.new_room) for step in awaited(made)} == {(NEARBY, "s")}
    both, alone = awaited(made)
    assert both.options == alone.options == options
    assert both.options_for(["x", clients(1)[0]])["machine_rooms"]["clients"] == {"x": "s", clients(1)[0]: "r"}
    assert made.moved.fewest == made.moved.most == 16
    assert made.cost is None
    assert made.unknowns == ("what it costs in pauses and duplicates: MACHINE_ROOM_NEARBY goes by the ids of members",)
    with pytest.raises(BadInputError, match="found machine room s for group billing, expected none"):
        relocate(found(), CHANGE, "app-green", "s")


@pytest.mark.parametrize(
    "migrate",
    [
        lambda one: update(one, CHANGE, 1),
        lambda one: rename(one, "billing-2", CHANGE, "g"),
        lambda one: reset(one, ResetRequest(to=AT)),
        lambda one: expand(one, "orders", 12),
    ],
)
def test_new_members_are_in_the_room_of_the_old_ones_where_that_is_one(
    migrate: Callable[[MigrationContext], Migration],
) -> None:
    one_room = rooms("r", "r", "r", "r")
    made = migrate(found(strategy=NEARBY, strategy_options=one_room))
    assert (awaited(made)[-1].new_room, awaited(made)[-1].options) == ("r", one_room)
    with pytest.raises(
        RefusedError, match="are in machine rooms r, s, and which one a new pod is in is not known"
    ) as refused:
        migrate(found(strategy=NEARBY, strategy_options=rooms("r", "s", "s", "s")))
    assert refused.value.name == "UnknownStrategy"
