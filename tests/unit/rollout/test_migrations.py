"""Migrations: each kind's steps in order, what it costs by the simulation, and what is refused by name."""

import re
import runpy
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.documents.data import SNAPSHOT
from planner.documents.plan import PLAN
from planner.errors import BadInputError, RefusedError, UnknownNameError
from planner.model.deployments import Autoscaler
from planner.model.membership import KafkaMember
from planner.model.queues import TopicPartition
from planner.model.snapshot import GroupSnapshot, QueueState
from planner.rollout.batches import Prices
from planner.rollout.build import RolloutSettings
from planner.rollout.explain import explain_plan
from planner.rollout.migrations.expand import expand
from planner.rollout.migrations.kafka import Variable, assignor, assignor_in_a_window, consumer_protocol
from planner.rollout.migrations.migration import Ground, Migration, ground, plan_of
from planner.rollout.migrations.relocate import relocate
from planner.rollout.migrations.rename import rename
from planner.rollout.migrations.strategy import refuse_rolling, strategy
from planner.rollout.migrations.update import update
from planner.rollout.steps import PauseForPerson, UpdateTemplate
from planner.rollout.template import ContainerChange, TemplateChange
from tests.builders import AT, clients, snapshot
from tests.unit.rollout.test_victims import in_pods

SETTINGS = RolloutSettings("billing", "app")
CHANGE = TemplateChange((ContainerChange("app", image="shop:2"),))
STARTED = AT - timedelta(hours=1)


def at_rest(taken: GroupSnapshot, **changes: Any) -> GroupSnapshot:
    """Return the snapshot in pods that took 8 s and a little more to be ready."""
    made, count = in_pods(taken), len(taken.clients)
    assert made.deployment
    assert made.deployment.pods
    pods = tuple(
        replace(pod, started_at=STARTED, ready_at=STARTED + timedelta(seconds=8 + number))
        for number, pod in enumerate(made.deployment.pods)
    )
    counts = dict.fromkeys(("replicas", "current", "updated", "ready", "available"), count)
    return replace(made, deployment=replace(made.deployment, pods=pods, **{**counts, **changes}))


def found(count: int = 4, settings: RolloutSettings = SETTINGS, **changes: Any) -> Ground:
    return ground(at_rest(replace(snapshot(clients=clients(count)), **changes)), "d", settings)


def kafka(name: str = "range", lists: tuple[str, ...] | None = None) -> Ground:
    ids = ("a", "b", "c")
    members = tuple(KafkaMember(one, one, "10.0.0.1", None, None, ("t",), lists or (name,)) for one in ids)
    states = tuple(QueueState(TopicPartition("t", n), 9, 9, 0, 5.0, 6.0, 5.0, ids[n // 2]) for n in range(6))
    taken = snapshot(clients=ids)
    taken = replace(taken, system="kafka", strategy=name, members=members, queues=states, setups=())
    return ground(at_rest(taken), "d", SETTINGS)


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
        uppers = [int(re.findall(r"[0-9]+", line.rpartition("worth ")[2])[-1]) for line in told[:-1]]
        assert uppers[0] == min(uppers)


def test_where_no_pod_tells_how_long_it_takes_the_fewest_rebalances_win_and_the_plan_says_so() -> None:
    taken = at_rest(snapshot(clients=clients(4)))
    assert taken.deployment
    young = tuple(replace(pod, ready_at=None) for pod in taken.deployment.pods or ())
    untold = ground(replace(taken, deployment=replace(taken.deployment, pods=young)), "d", SETTINGS)
    made = update(untold, CHANGE, 1)
    assert made.cost is None
    assert made.unknowns == ("how long a pod takes until it is ready: none of the present ones tells",)
    assert [step.max_surge for step in made.steps if isinstance(step, UpdateTemplate)] == [4]


@pytest.mark.parametrize(("changes", "surge"), [({}, 0), ({"grace_s": 0}, None)])
def test_an_orderly_group_is_not_left_to_locks_of_the_dead(changes: dict[str, Any], surge: int | None) -> None:
    taken = at_rest(replace(snapshot(clients=clients(4)), orderly=True), **changes)
    with pytest.raises(RefusedError, match="consumes in order") as refused:
        update(ground(taken, "d", SETTINGS), CHANGE, 1, surge)
    assert refused.value.name == "OrderlyWithoutSurge"


@pytest.mark.parametrize(
    "migrate",
    [
        lambda one: strategy(one, "AVG_BY_CIRCLE", {}, CHANGE, "g"),
        lambda one: rename(one, "billing-2", CHANGE, "g"),
        lambda one: relocate(one, CHANGE, "g"),
    ],
)
def test_no_pod_of_an_orderly_group_is_killed_at_once(migrate: Callable[[Ground], Migration]) -> None:
    orderly = replace(snapshot(clients=clients(4)), orderly=True)
    with pytest.raises(RefusedError, match="kills its pods at once"):
        migrate(ground(at_rest(orderly, grace_s=0), "d", SETTINGS))
    assert migrate(ground(at_rest(orderly), "d", SETTINGS)).steps


def test_a_group_whose_pods_are_killed_is_forecast_to_lose_what_was_not_stored() -> None:
    kind, killed = found(), ground(at_rest(snapshot(clients=clients(4)), grace_s=0), "d", SETTINGS)
    costs = [strategy(one, "AVG_BY_CIRCLE", {}, CHANGE, "g").cost for one in (kind, killed)]
    assert costs[0] is not None
    assert costs[1] is not None
    assert costs[0] != costs[1]


def test_a_strategy_changes_while_nobody_consumes() -> None:
    made = strategy(found(), "AVG_BY_CIRCLE", {}, CHANGE, "app-green")
    assert kinds(made) == ["createDeployment", *STOP, *START, "checkForecast"]
    assert "queues have two owners" in made.why[0]
    assert made.cost is not None
    assert made.cost.pause_seconds is not None
    # As long as a pod takes to be ready at least: 8 s of the quickest one.
    assert made.cost.pause_seconds.p05 > 8


def test_two_groups_side_by_side_are_taken_where_that_costs_less() -> None:
    def changed(settings: RolloutSettings = SETTINGS, **changes: Any) -> Migration:
        return strategy(found(settings=settings, **changes), "AVG_BY_CIRCLE", {}, CHANGE, "g", "billing-2")

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


def test_the_naive_change_of_strategy_is_refused_with_what_it_would_do() -> None:
    with pytest.raises(RefusedError, match=r"2 of 4 members on AVG_BY_CIRCLE, \d+ queues have two owners") as refused:
        refuse_rolling(found(), "AVG_BY_CIRCLE", {})
    assert refused.value.name == "SplitBrain"


def test_a_group_gets_another_name_by_cloned_offsets_that_a_person_confirms() -> None:
    ground_of = found()
    made = rename(ground_of, "billing-2", CHANGE, "app-green")
    assert kinds(made) == ["createDeployment", *STOP, "cloneOffsets", *START, "checkForecast"]
    plan = plan_of(made, ground_of, AT)
    assert plan.migration == "rename"
    assert plan.confirmations == ("set the offsets of billing-2",)


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


def test_one_roll_is_enough_where_every_list_has_both() -> None:
    both = kafka(lists=("range", "cooperative-sticky"))
    made = assignor(both, "cooperative-sticky", Variable("app", "ASSIGNORS"), 5)
    assert kinds(made) == [*ROLL, "checkForecast"]


def test_clients_that_refuse_mixed_lists_stop_before_any_starts() -> None:
    made = assignor_in_a_window(kafka(), "cooperative-sticky", CHANGE, "app-green")
    assert kinds(made) == ["createDeployment", *STOP, *START, "checkForecast"]


def test_the_consumer_protocol_comes_in_one_roll_and_has_no_forecast() -> None:
    made = consumer_protocol(kafka(), CHANGE, 1)
    assert kinds(made) == [*ROLL, "checkForecast"]
    assert made.cost is None
    assert any("has no forecast" in unknown for unknown in made.unknowns)


EVERY: list[tuple[Callable[[], Ground], Callable[[Ground], Migration]]] = [
    (found, lambda one: update(one, CHANGE, 1)),
    (found, lambda one: strategy(one, "AVG_BY_CIRCLE", {}, CHANGE, "green", "billing-2")),
    (found, lambda one: rename(one, "billing-2", CHANGE, "green")),
    (found, lambda one: relocate(one, CHANGE, "green")),
    (found, lambda one: expand(one, "orders", 12, 6)),
    (kafka, lambda one: assignor(one, "sticky", Variable("app", "ASSIGNORS"), 1)),
    (kafka, lambda one: consumer_protocol(one, CHANGE, 1)),
]


@pytest.mark.parametrize(("made_for", "migrate"), EVERY)
def test_every_migration_is_a_plan_that_is_read_back_and_told(
    made_for: Callable[[], Ground], migrate: Callable[[Ground], Migration]
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
        (at_rest(snapshot(), autoscalers=(Autoscaler("HorizontalPodAutoscaler", "hpa", 1, 9),)), "OtherScaler"),
        (at_rest(snapshot(), autoscalers=None), "OtherScaler"),
        (replace(at_rest(snapshot()), strategy="CONFIG"), "UnknownStrategy"),
    ],
)
def test_no_migration_of_what_is_not_at_rest_or_not_ours(taken: GroupSnapshot, name: str) -> None:
    with pytest.raises(RefusedError) as refused:
        ground(taken, "d", SETTINGS)
    assert refused.value.name == name


@pytest.mark.parametrize(
    ("attempt", "error", "words"),
    [
        (lambda: strategy(found(), "AVG", {}, CHANGE, "g"), BadInputError, "has strategy AVG already"),
        (lambda: strategy(found(), "NONE", {}, CHANGE, "g"), UnknownNameError, "choose one of"),
        (lambda: strategy(kafka(), "AVG", {}, CHANGE, "g"), BadInputError, "is a Kafka group"),
        (lambda: rename(found(), "billing", CHANGE, "g"), BadInputError, "has this name already"),
        (lambda: assignor(found(), "range", Variable("a", "A"), 1), BadInputError, "expected a classic Kafka group"),
        (lambda: assignor(kafka(), "range", Variable("a", "A"), 1), BadInputError, "has assignor range already"),
        (lambda: assignor(kafka(), "uniform", Variable("a", "A"), 1), UnknownNameError, "choose one of"),
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


POLICY = """
apiVersion: consumerplanner.dev/v1alpha1
kind: ConsumerScalingPolicy
metadata: {name: billing}
spec:
  source: {system: rocketmq, cluster: DefaultCluster, group: billing, nameServers: ["127.0.0.1:9876"]}
  scaleTargetRef: {name: app}
  maxReplicas: 16
"""


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (found, ["update", "--image", "shop:2", "--revision", "3"]),
        (found, ["strategy", "--to", "AVG_BY_CIRCLE", "--green", "g"]),
        (found, ["rename", "--to", "billing-2", "--green", "g"]),
        (found, ["relocate", "--node-label", "zone=b", "--green", "g"]),
        (found, ["expand", "--topic", "orders", "--each", "12", "--consumers", "6"]),
        (kafka, ["assignor", "--to", "cooperative-sticky"]),
        (kafka, ["protocol"]),
    ],
)
def test_the_example_plans_each_of_them(
    of: Callable[[], Ground], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main = runpy.run_path("examples/migrations.py")["main"]
    taken, policy = tmp_path / "snapshot.json", tmp_path / "policy.yaml"
    taken.write_bytes(SNAPSHOT.dump(of().snapshot))
    policy.write_text(POLICY)
    assert main([str(taken), str(policy), *words]) == 0
    assert "Step 1: " in capsys.readouterr().out
    assert main([str(taken), str(policy), "strategy", "--to", "NONE"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
