"""The short form, the next command, and the counts that nearly did."""

import json
from dataclasses import replace

import pytest

from planner.advice.answer import Advice, by_gain, price_of, short_form
from planner.advice.near_misses import near_misses
from planner.advice.next_command import AddressCommands, NextCommand, PolicyCommands, next_command
from planner.decision.decision import HoldCause
from planner.decision.objective import Objective
from tests.builders import OBJECTIVE, World, decided, queues, snapshot

SHORT = ["decision", "from", "to", "cause", "reason", "cost", "next"]
FILES = PolicyCommands("shop.yaml", "snap.json", "plan.yaml")
ADDRESS = AddressCommands("shop", "-n 10.0.0.5:9876", deployment="shop/orders", highest=12)


def advice(world: World, **changes: object) -> Advice:
    made = Advice(
        system="rocketmq",
        cluster="DefaultCluster",
        group="billing",
        deployment=None,
        decision=world.record.decision,
        price=price_of(world.plan, len(world.snapshot.data_queues)),
        watched_s=60.0,
        arrival_rate=160.0,
        consumption_rate=160.0,
        lag=0,
        is_clear=True,
        missing=(),
        near_misses=(),
        findings=(),
        next=NextCommand("planner doctor"),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def overloaded() -> World:
    return decided(snapshot(capacity=50.0), trials=4)


def quiet() -> World:
    return decided(snapshot(rates=dict.fromkeys(queues(), 11.0)))


def test_the_short_form_of_a_change_is_fixed() -> None:
    form = short_form(advice(overloaded()))
    assert list(form) == SHORT
    assert (form["decision"], form["from"], form["to"], form["cause"]) == ("scale", 3, 6, "TooFewConsumers")
    assert form["cost"]["pods"] == 3
    assert form["cost"]["movedQueues"]["of"] == 16
    assert form["cost"]["movedQueues"]["fewest"] <= form["cost"]["movedQueues"]["most"]
    assert set(form["cost"]["pauseSeconds"]) == {"p05", "p50", "p95"}
    assert json.loads(json.dumps(form)) == form


def test_a_hold_has_equal_counts_and_costs_nothing() -> None:
    form = short_form(advice(quiet()))
    assert list(form) == SHORT
    assert (form["decision"], form["from"], form["to"], form["cause"]) == ("hold", 3, 3, "RightAlready")
    assert (form["cost"]["pods"], form["cost"]["movedQueues"]["most"]) == (0, 0)


def test_an_unknown_price_is_null_and_never_zero() -> None:
    plan = overloaded().plan
    assert plan is not None
    forecast = replace(plan.forecast, cost=None)
    cost = short_form(advice(overloaded(), price=price_of(replace(plan, forecast=forecast), 16)))["cost"]
    assert (cost["pauseSeconds"], cost["duplicates"]) == (None, None)


@pytest.mark.parametrize("cause", [*HoldCause, None])
@pytest.mark.parametrize("commands", [FILES, ADDRESS])
def test_every_decision_has_a_next_command(cause: HoldCause | None, commands: PolicyCommands | AddressCommands) -> None:
    step = next_command(cause, commands)
    assert step.command.startswith("planner ")
    assert "\n" not in str(step)
    assert not {"delete", "reset", "--force"} & set(str(step).split())


def test_a_strategy_that_cannot_be_simulated_asks_for_the_fields_that_its_sentence_names() -> None:
    reason = "no room for m-1: state its room in spec.strategyOptions, or that of new pods in spec.newPods.room"
    step = next_command(HoldCause.UNSUPPORTED_STRATEGY, FILES, reason)
    assert str(step) == (
        "planner plan snap.json --policy shop.yaml -o plan.yaml"
        "   # after spec.strategyOptions or spec.newPods.room in shop.yaml says it"
    )
    assert "doctor" in next_command(HoldCause.UNSUPPORTED_STRATEGY, FILES, "every queue is given to several").command


def test_next_commands_name_what_the_reader_has() -> None:
    assert next_command(HoldCause.OLD_DATA, FILES).command == "planner snapshot --policy shop.yaml -o snap.json"
    assert (
        next_command(HoldCause.OTHER_SCALER, FILES).command == "planner plan snap.json --policy shop.yaml -o plan.yaml"
    )
    assert next_command(None, ADDRESS).command == (
        "planner init -n 10.0.0.5:9876 --group shop --deployment shop/orders --max 12 -o shop.yaml"
    )
    elsewhere = replace(ADDRESS, kubeconfig="/etc/my kube")
    access = "--deployment shop/orders --kubeconfig '/etc/my kube'"
    assert (
        next_command(HoldCause.OLD_DATA, elsewhere).command == f"planner advise -n 10.0.0.5:9876 --group shop {access}"
    )
    assert next_command(HoldCause.UNKNOWN_LAG, elsewhere).command == (
        "planner doctor -n 10.0.0.5:9876 --group shop --deployment orders --namespace shop --kubeconfig '/etc/my kube' "
        "--watch 60"
    )
    strange = AddressCommands("%RETRY% of $HOME", "-n 10.0.0.5:9876")
    assert "--group '%RETRY% of $HOME'" in next_command(HoldCause.UNKNOWN_LAG, strange).command


def test_what_lacks_consumers_comes_first_and_what_is_right_last() -> None:
    idle = decided(snapshot(rates=dict.fromkeys(queues(), 1.0)))
    few, many, right = advice(overloaded(), group="few"), advice(idle, group="many"), advice(quiet(), group="right")
    assert [one.group for one in sorted([right, many, few], key=by_gain)] == ["few", "many", "right"]


def test_a_count_that_misses_by_little_is_shown_with_the_difference() -> None:
    objective: Objective = replace(OBJECTIVE, backlog_gone_s=600.0)
    world = decided(snapshot(lags=dict.fromkeys(queues(), 2_000), capacity=60.0), objective)
    by_count = {outcome.count: outcome for outcome in world.outcomes if outcome.strategy == "AVG"}
    near = replace(by_count[6], drain_s=671.0, utilisation=0.7)
    assert near_misses([near], 8, objective) == (
        "6 consumers would nearly do: the backlog is gone after 11 min 11 s, the objective is 10 min",
    )
    assert near_misses([replace(near, drain_s=6_000.0)], 8, objective) == ()
    assert near_misses([replace(near, drain_s=None)], 8, objective) == ()
    assert near_misses([near], 6, objective) == ()
