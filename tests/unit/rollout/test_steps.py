"""Every kind of step tells itself whole, and none can be built that makes no sense."""

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import pytest

from planner.report.steps import step_row
from planner.rollout.explain import tell_step
from planner.rollout.steps import (
    AutoscalerState,
    AwaitLag,
    AwaitReady,
    AwaitSettled,
    CloneOffsets,
    CreateDeployment,
    DeleteDeployment,
    MarkVictims,
    MovedQueues,
    PauseForPerson,
    ResetOffsets,
    SetAutoscaler,
    StartConsumers,
    Step,
    StopConsumers,
    UpdateTemplate,
    Victim,
)
from planner.rollout.steps.sense import MOST_LIMIT_S, scaled_limit
from planner.rollout.template import ContainerChange, Setting, TemplateChange
from tests.builders import decided, snapshot
from tests.step_builders import IMAGE, SINCE, STEPS

MOVED = MovedQueues(1, 2)
FREE = AutoscalerState(1, 5, is_paused=False)
A = (Setting("A", "1"),)


def test_there_is_one_of_every_kind() -> None:
    assert {type(step) for step in STEPS} == set(get_args(Step))
    assert len({step.kind for step in STEPS}) == len(STEPS)


TOLD = [
    "start 2 pods, 3 to 5 replicas, at most 5 min; 7 to 9 queues change owner. Undo: set the replicas of shop "
    "back to 3.",
    "wait until the Deployment has 5 pods of its newest template, all ready, and no other, at most 5 min.",
    "wait until all 5 members own what AVG gives them, seen twice with no rebalance in between, at most 3 min.",
    "mark shop-a, shop-b so that they stop first, at most 30 s. Undo: give shop-a, shop-b the deletion cost back that "
    "they had.",
    "stop 2 pods, 5 to 3 replicas, best 10.0.0.1@1, at most 5 min; how many queues move is not known beforehand. "
    "Undo: set the replicas of shop back to 5.",
    "create Deployment shop-green as the Deployment is with image shop:2, A=1 in container app, without consumers, at "
    "most 1 min. Undo: delete Deployment shop-green.",
    "give all 3 pods image shop:2, A=1 in container app; at once up to 1 are started above and 0 missing below 3, at "
    "most 10 min; how many queues move is not known beforehand. Undo: put the template of revision 4 back.",
    "wait until in group shop-2 at most 1000 messages wait and none waits longer than 30 s, at most 15 min.",
    "delete Deployment shop, which runs nothing any more, at most 1 min. There is no way back.",
    "set HorizontalPodAutoscaler shop-hpa to 1 to 5 replicas, paused, at most 1 min. Undo: set HorizontalPodAutoscaler "
    "shop-hpa back to 1 to 4 replicas, not paused.",
    "set the offsets of shop-2 to those of the group, at most 1 min. There is no way back.",
    "set the offsets of shop-2 to the first messages since 2026-11-21 09:00:00 UTC, at most 1 min. There is no way "
    "back.",
    "ask a person “Do the new consumers deliver?”, at most 1 h.",
    "compare the forecast with what was observed, at most 2 min.",
]


@pytest.mark.parametrize(("step", "told"), list(zip(STEPS, TOLD, strict=True)), ids=[step.kind for step in STEPS])
def test_a_step_is_told_with_limit_moves_and_undo(step: Step, told: str) -> None:
    assert tell_step(step) == told


@pytest.mark.parametrize("step", STEPS, ids=[step.kind for step in STEPS])
def test_a_step_says_what_it_needs_and_when_it_is_done(step: Step) -> None:
    for words in (step.action, step.needs, step.done_when):
        assert words
        assert not words.endswith(".")
    assert not (step.undo and step.is_final)
    shown = step_row(step)
    assert shown.title
    assert shown.undo == (step.undo or "nothing to undo")


def test_a_step_on_another_deployment_or_group_names_it() -> None:
    assert "of Deployment green" in tell_step(StartConsumers(3, 5, 60, MOVED, "x", deployment="green"))
    assert "Deployment green has 5 pods" in tell_step(AwaitReady(5, 300, deployment="green"))
    assert "all 5 members of group shop-2 own" in tell_step(AwaitSettled(5, "AVG", 180, group="shop-2"))
    assert "as Deployment blue is" in tell_step(CreateDeployment("green", 60, origin="blue"))


def test_a_wait_for_a_single_member_speaks_of_a_single_member() -> None:
    assert "wait until the only member owns what AVG gives it, seen" in tell_step(AwaitSettled(1, "AVG", 180))
    assert "the only member takes messages of every queue, seen" in tell_step(AwaitSettled(1, "POP", 180))
    assert (
        step_row(AwaitSettled(1, "AVG", 180)).detail == "The only member owns what AVG gives it, seen twice in a row."
    )


def test_waiting_for_nobody_is_waiting_until_all_are_gone() -> None:
    assert "the Deployment has no pod left" in tell_step(AwaitReady(0, 60))
    assert "the group has no member left" in tell_step(AwaitSettled(0, "AVG", 60))


SENSELESS: list[tuple[str, Callable[[], object]]] = [
    ("time limit from 1 s", lambda: AwaitReady(3, 0)),
    ("to go up", lambda: StartConsumers(3, 3, 60, MOVED, "x")),
    ("to go up", lambda: StartConsumers(-1, 3, 60, MOVED, "x")),
    ("to go down", lambda: StopConsumers(3, 3, (), 60, MOVED, "x")),
    ("to go down", lambda: StopConsumers(3, -1, (), 60, MOVED, "x")),
    ("each victim once", lambda: StopConsumers(3, 1, ("a", "a"), 60, MOVED, "x")),
    ("0 replicas or more", lambda: AwaitReady(-1, 60)),
    ("0 members or more", lambda: AwaitSettled(-1, "AVG", 60)),
    ("strategy with names", lambda: AwaitSettled(1, "", 60)),
    ("victims with names", lambda: MarkVictims((), 60)),
    ("each once", lambda: MarkVictims((Victim("p", ("a",)), Victim("p", ("b",))), 60)),
    ("members of victims", lambda: MarkVictims((Victim("p", ("a",)), Victim("q", ("a",))), 60)),
    ("members of victims", lambda: MarkVictims((Victim("p", ()),), 60)),
    ("deletion cost below 0", lambda: MarkVictims((Victim("p", ("a",)),), 60, deletion_cost=0)),
    ("deletion cost below 0", lambda: MarkVictims((Victim("p", ("a",)),), 60, deletion_cost=-(2**31) - 1)),
    ("to change something", lambda: SetAutoscaler("a", "ScaledObject", FREE, FREE, 60)),
    ("from 0 up to its maximum", lambda: SetAutoscaler("a", "ScaledObject", FREE, replace(FREE, minimum=6), 60)),
    ("autoscaler with names", lambda: SetAutoscaler("", "ScaledObject", FREE, replace(FREE, is_paused=True), 60)),
    ("deployment with names", lambda: CreateDeployment("", 60)),
    ("another name than blue", lambda: CreateDeployment("blue", 60, origin="blue")),
    ("1 replica and revision 1", lambda: UpdateTemplate(IMAGE, 0, 1, 0, 1, 60, MOVED)),
    ("1 replica and revision 1", lambda: UpdateTemplate(IMAGE, 3, 1, 0, 0, 60, MOVED)),
    ("both limits are 0", lambda: UpdateTemplate(IMAGE, 3, 0, 0, 1, 60, MOVED)),
    ("leave one of 3 replicas", lambda: UpdateTemplate(IMAGE, 3, 1, 3, 1, 60, MOVED)),
    ("surge by 0 or more", lambda: UpdateTemplate(IMAGE, 3, -1, 1, 1, 60, MOVED)),
    ("a bound from 0 to", lambda: AwaitLag(60)),
    ("a bound from 0 to", lambda: AwaitLag(60, messages=5, seconds=-1)),
    ("deployment with names", lambda: DeleteDeployment("", 60)),
    ("set the offsets of g-2", lambda: CloneOffsets("g-2", "yes", 60)),
    ("groups with names, each once", lambda: CloneOffsets("g-2", "set the offsets of g-2", 60, group="g-2")),
    ("set the offsets of g-2", lambda: ResetOffsets("g-2", "", 60, to_time=SINCE)),
    ("a time with its zone", lambda: ResetOffsets("g", "set the offsets of g", 60, to_time=SINCE.replace(tzinfo=None))),
    ("one of toTime, toEnd", lambda: ResetOffsets("g", "set the offsets of g", 60)),
    ("one of toTime", lambda: ResetOffsets("g", "set the offsets of g", 60, to_time=SINCE, to_end="latest")),
    ("together with its queue", lambda: ResetOffsets("g", "set the offsets of g", 60, to_offset=7)),
    ("offset from 0 on", lambda: ResetOffsets("g", "set the offsets of g", 60, to_offset=-1, queue="o/b/0")),
    ("not both", lambda: ResetOffsets("g", "set the offsets of g", 60, to_end="latest", topic="o", queue="o/b/0")),
    ("a topic or queue", lambda: ResetOffsets("g", "set the offsets of g", 60, to_end="latest", topic="")),
    ("ask a question", lambda: PauseForPerson("go on", 60)),
    ("to change something", TemplateChange),
    ("a change of container app", lambda: ContainerChange("app")),
    ("each variable of container app once", lambda: ContainerChange("app", env=A, removed_env=("A",))),
    ("each thing once", lambda: TemplateChange(containers=(*IMAGE.containers, *IMAGE.containers))),
]  # fmt: skip


@pytest.mark.parametrize(("said", "build"), SENSELESS, ids=[f"{n}-{said}" for n, (said, _) in enumerate(SENSELESS)])
def test_a_senseless_step_cannot_be_built(said: str, build: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=said):
        build()


def test_a_template_change_is_told_whole() -> None:
    change = TemplateChange(
        containers=(ContainerChange("app", arguments=("--group", "g2"), removed_env=("OLD",)),),
        annotations=(Setting("config", "abc"),),
        node_labels=(Setting("zone", "b"),),
    )
    assert str(change) == (
        "arguments --group g2, no OLD in container app; annotation config=abc; nodes with zone=b"
    )  # fmt: skip


def test_only_a_migration_may_write_offsets_and_it_names_the_phrases_to_type() -> None:
    plan = decided(snapshot(capacity=65.0)).plan
    assert plan is not None
    steps = (*plan.steps, CloneOffsets("billing-2", "set the offsets of billing-2", 60))
    with pytest.raises(ValueError, match="only a migration may"):
        replace(plan, steps=steps)
    assert replace(plan, steps=steps, migration="strategy").confirmations == ("set the offsets of billing-2",)
    assert plan.confirmations == ()


@pytest.mark.parametrize("step", STEPS, ids=[step.kind for step in STEPS])
def test_no_step_waits_for_more_than_a_week(step: Step) -> None:
    """Red without an upper bound: such a time cannot be counted to, and the plan would run for ever (OverflowError)."""
    assert replace(step, time_limit_seconds=MOST_LIMIT_S).time_limit_seconds == 604_800
    for seconds in (MOST_LIMIT_S + 1, 999_999_999_999, 0, -1):
        with pytest.raises(ValueError, match=rf"time limit from 1 s to 604800 s, not {seconds} s"):
            replace(step, time_limit_seconds=seconds)


def test_a_limit_for_several_rounds_stays_within_the_bound() -> None:
    assert (scaled_limit(300, 4), scaled_limit(MOST_LIMIT_S, 10_000)) == (1_200, MOST_LIMIT_S)
