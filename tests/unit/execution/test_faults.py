"""What goes wrong in a cluster, one thing at a time: each ends by a name, and never with too few consumers by us."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count

import pytest

from planner.execution.engine import decide
from planner.execution.moves import Wait, Write
from planner.execution.observation import Claim, Observation
from planner.execution.phases import Phase
from planner.execution.ports import StoredPlan
from planner.execution.progress import RolloutStatus
from planner.execution.reconcile import Outcome, Ports, run_reconcile
from planner.model.autoscalers import Autoscaler
from planner.model.queues import MessageQueue
from planner.rollout.steps import (
    AwaitLag,
    AwaitReady,
    AwaitSettled,
    CheckForecast,
    MarkVictims,
    PauseForPerson,
    StopConsumers,
    Victim,
)
from tests.unit.execution.fake import FakeCluster, FakeDeployment
from tests.unit.execution.worlds import (
    DEPLOYMENT,
    GREEN,
    HPA,
    LIMIT_S,
    MOVES,
    SCENARIOS,
    UNUSED,
    Chaos,
    counts,
    drive,
    is_old,
    pinned,
    ports,
    renewed,
    rewound,
    stored,
    twice,
    untouched,
    world,
)

UP, DOWN, RENEWED, BLUE_GREEN, MOVED, _, ROLLED_TWICE, *_SPLIT = SCENARIOS


def when(cluster: FakeCluster, phase: Phase, step: int, happens: Callable[[], None]) -> Callable[[int], None]:
    """Return a hook that has something happen once, at the first turn that finds the plan so far."""
    left = [happens]

    def look(_: int) -> None:
        status = cluster.status("plan-1")
        if left and status.phase is phase and len(status.steps) > step:
            left.pop()()

    return look


def ended(cluster: FakeCluster, meanwhile: Callable[[int], None] = lambda _: None) -> RolloutStatus:
    drive(cluster, meanwhile=meanwhile)
    assert not twice(cluster)
    return cluster.status("plan-1")


def test_pods_that_never_become_ready_bring_the_old_state_back_within_the_time_limit() -> None:
    cluster = world(UP)
    cluster.faults.never_ready = True
    status = ended(cluster)
    assert status.phase is Phase.ROLLED_BACK
    assert (
        "awaitReady was not done within 120 s: 3 of 4 pods of Deployment billing-consumer are ready" in status.message
    )
    assert is_old(cluster)
    assert cluster.lowest_ready == 3


def test_a_member_that_never_joins_brings_the_old_state_back() -> None:
    cluster = world(UP)
    cluster.faults.never_joins = True
    status = ended(cluster)
    assert status.phase is Phase.ROLLED_BACK
    assert "group billing has 3 of 4 members" in status.message
    assert is_old(cluster)


def test_green_pods_that_never_become_ready_leave_blue_alone() -> None:
    cluster = world(BLUE_GREEN)
    cluster.faults.never_ready = True
    assert ended(cluster).phase is Phase.ROLLED_BACK
    assert GREEN not in cluster.deployments
    assert is_old(cluster)
    assert cluster.lowest_ready == 3


@pytest.mark.parametrize("is_aborted", [False, True])
def test_a_template_that_somebody_else_gives_meanwhile_is_left_and_named(is_aborted: bool) -> None:
    cluster = world(RENEWED)

    def deploy() -> None:
        found = cluster.deployments[DEPLOYMENT]
        found.revision = found.newest = 3
        if is_aborted:
            cluster.ask("plan-1", abort=True)

    status = ended(cluster, when(cluster, Phase.RUNNING, 1, deploy))
    assert (status.phase, status.ended) == (Phase.STUCK, "between")
    assert f"somebody changed the template of Deployment {DEPLOYMENT}, which is left so" in status.message
    assert cluster.deployments[DEPLOYMENT].revision == 3


def test_a_template_whose_pods_never_become_ready_is_taken_back() -> None:
    cluster = world(RENEWED)
    cluster.faults.never_ready = True

    def recover(_: int) -> None:
        if cluster.status("plan-1").phase is Phase.ABORTING:
            cluster.faults.never_ready = False

    assert ended(cluster, recover).phase is Phase.ROLLED_BACK
    assert is_old(cluster)
    assert cluster.lowest_ready == 3


def test_an_evicted_pod_is_replaced_and_the_plan_goes_on() -> None:
    cluster = world(UP)
    hook = when(cluster, Phase.RUNNING, 2, lambda: cluster.evict(cluster.live(DEPLOYMENT)[0]))
    assert ended(cluster, hook).phase is Phase.SUCCEEDED


def test_a_crash_while_the_group_settles_makes_it_settle_again() -> None:
    cluster = world(UP)
    hook = when(cluster, Phase.RUNNING, 5, lambda: cluster.crash(cluster.live(DEPLOYMENT)[1], 20.0))
    assert ended(cluster, hook).phase is Phase.SUCCEEDED


def test_a_victim_that_dies_before_it_is_stopped_turns_the_plan_back() -> None:
    cluster = world(DOWN)
    hook = when(cluster, Phase.RUNNING, 0, lambda: cluster.evict(cluster.live(DEPLOYMENT)[0]))
    status = ended(cluster, hook)
    assert status.phase is Phase.ROLLED_BACK
    assert "billing-consumer-1-0001" in status.message
    assert cluster.deployments[DEPLOYMENT].replicas == 5
    assert untouched(cluster)


def test_a_marked_victim_that_dies_before_the_stop_turns_the_plan_back_as_its_replacement_is_not_marked() -> None:
    cluster = world(DOWN)
    victim = cluster.live(DEPLOYMENT)[0]
    status = ended(cluster, when(cluster, Phase.RUNNING, 1, lambda: cluster.evict(victim)))
    assert status.phase is Phase.ROLLED_BACK
    assert [refusal.code for refusal in status.refusals] == ["VictimGone"]
    assert f"pod {victim.name}, which is to stop, is no longer in Deployment {DEPLOYMENT}" in status.message
    assert cluster.deployments[DEPLOYMENT].replicas == 5
    assert untouched(cluster)


def test_pods_that_an_earlier_stop_took_are_not_missed_by_a_later_one() -> None:
    cluster = FakeCluster(5)
    pods = cluster.live(DEPLOYMENT)
    batches = [
        (
            MarkVictims((Victim(pod.name, (pod.member,)),), LIMIT_S),
            StopConsumers(count, count - 1, (pod.member,), LIMIT_S, MOVES, undo=f"set {count}"),
            AwaitReady(count - 1, LIMIT_S),
            AwaitSettled(count - 1, "AVG", LIMIT_S),
        )
        for pod, count in ((pods[0], 5), (pods[1], 4))
    ]
    stored(cluster, [step for batch in batches for step in batch])
    assert ended(cluster).phase is Phase.SUCCEEDED
    assert not {pod.name for pod in pods[:2]} & {pod.name for pod in cluster.live(DEPLOYMENT)}


def test_a_pod_that_is_not_ready_keeps_the_stop_waiting_as_it_would_go_before_the_victims() -> None:
    cluster = world(DOWN)
    other = cluster.live(DEPLOYMENT)[4]
    status = ended(cluster, when(cluster, Phase.RUNNING, 1, lambda: cluster.crash(other, 30.0)))
    assert status.phase is Phase.SUCCEEDED
    assert other in cluster.live(DEPLOYMENT)
    assert not status.surprises


def test_another_pod_that_stopped_than_was_marked_is_named_and_the_mark_is_taken_back() -> None:
    cluster = world(DOWN)
    marked, other = cluster.live(DEPLOYMENT)[:2], cluster.live(DEPLOYMENT)[4]

    def falls_over(what: str) -> None:
        """A pod that is to stay falls over while the request to lower the count is on its way."""
        if what == "perform SetReplicas":
            cluster.crash(other, 3.0)

    drive(cluster, through=ports(cluster, falls_over))
    status = cluster.status("plan-1")
    assert status.phase is Phase.SUCCEEDED
    (survivor,) = [pod for pod in marked if pod in cluster.live(DEPLOYMENT)]
    assert status.surprises == (
        f"{other.name} stopped where {survivor.name} was marked: other queues move than forecast",
    )
    assert survivor.cost == 0


def test_a_mark_that_another_writer_took_away_is_set_again_before_the_stop_and_the_writer_is_named() -> None:
    cluster = world(DOWN)
    chosen, stay = cluster.live(DEPLOYMENT)[:2], cluster.live(DEPLOYMENT)[2:]

    def rewrite() -> None:
        chosen[0].cost, chosen[0].cost_by = 7, "node-autoscaler"

    drive(cluster, meanwhile=when(cluster, Phase.RUNNING, 1, rewrite))
    status = cluster.status("plan-1")
    assert status.phase is Phase.SUCCEEDED
    assert cluster.live(DEPLOYMENT) == stay
    assert status.surprises == (
        f"node-autoscaler gave pod {chosen[0].name} deletion cost 7, after the plan had marked it to stop first: "
        "marked again",
    )


def test_marks_that_are_taken_away_again_and_again_turn_the_plan_back() -> None:
    cluster = world(DOWN)
    chosen = cluster.live(DEPLOYMENT)[0]

    def fight(_: int) -> None:
        if len(cluster.status("plan-1").steps) > 1 and chosen.cost < 0:
            chosen.cost, chosen.cost_by = 7, "node-autoscaler"

    drive(cluster, meanwhile=fight)
    status = cluster.status("plan-1")
    assert status.phase is Phase.ROLLED_BACK
    assert cluster.deployments[DEPLOYMENT].replicas == 5
    assert len(cluster.live(DEPLOYMENT)) == 5
    assert len([surprise for surprise in status.surprises if "node-autoscaler" in surprise]) == 1
    assert "and does so again" in status.message


def test_a_writer_that_is_a_moment_late_with_its_mark_does_not_choose_who_stops() -> None:
    cluster = world(DOWN)
    chosen, marked = cluster.live(DEPLOYMENT)[0], [True]

    def fight(_: int) -> None:
        if len(cluster.status("plan-1").steps) > 1 and chosen.cost < 0:
            if marked[-1]:  # seen as the plan marked it by the turn before this one, too
                chosen.cost, chosen.cost_by = 7, "node-autoscaler"
            marked.append(not marked[-1])

    drive(cluster, meanwhile=fight)
    assert len(marked) > 4
    assert cluster.status("plan-1").phase is Phase.ROLLED_BACK
    assert len(cluster.live(DEPLOYMENT)) == 5


def test_a_pod_that_another_writer_marked_keeps_the_stop_waiting_until_its_annotation_is_gone() -> None:
    cluster = world(DOWN)
    chosen, stay = cluster.live(DEPLOYMENT)[:2], cluster.live(DEPLOYMENT)[2:]
    held: list[str | None] = []

    def look(_: int) -> None:
        status = cluster.status("plan-1")
        if len(status.steps) == 2 and not held:
            stay[2].cost, stay[2].cost_by = -(2**31), "other-tool"
            held.append(None)
        elif status.held and "other-tool" in status.held and stay[2].cost:
            held.append(status.held)
            stay[2].cost = 0

    drive(cluster, meanwhile=look)
    assert held[1:] == [
        f"other-tool gave pod {stay[2].name} deletion cost -2147483648, so that it may stop instead of "
        f"{chosen[0].name}, {chosen[1].name}: remove its annotation"
    ]
    assert cluster.status("plan-1").phase is Phase.SUCCEEDED
    assert cluster.live(DEPLOYMENT) == stay


def test_a_broker_that_is_away_for_a_while_only_makes_the_plan_wait() -> None:
    cluster = world(UP)

    def away() -> None:
        cluster.faults.broker_down_until = cluster.now_s + 60

    status = ended(cluster, when(cluster, Phase.RUNNING, 2, away))
    assert status.phase is Phase.SUCCEEDED
    assert ("Held", "plan-1: the members of group billing could not be read") in cluster.told


def test_a_broker_that_stays_away_brings_the_old_state_back() -> None:
    cluster = world(UP)

    def away() -> None:
        cluster.faults.broker_down_until = cluster.now_s + 10_000

    status = ended(cluster, when(cluster, Phase.RUNNING, 2, away))
    assert status.phase is Phase.ROLLED_BACK
    assert "the members of group billing could not be read" in status.message
    assert is_old(cluster)


def test_an_api_server_that_is_away_for_longer_than_any_limit_turns_nothing_back_that_is_done() -> None:
    cluster = world(UP)

    def away() -> None:
        cluster.faults.down_until = cluster.now_s + 300

    assert ended(cluster, when(cluster, Phase.RUNNING, 1, away)).phase is Phase.SUCCEEDED


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario[0])
def test_answers_that_are_lost_have_no_effect_twice(scenario: tuple[str, int, int, object]) -> None:
    cluster = world(scenario)  # type: ignore[arg-type]

    def lose(_: int) -> None:
        cluster.faults.answers_lost = 1

    assert ended(cluster, lose).phase is Phase.SUCCEEDED
    assert untouched(cluster)


def test_another_writer_who_touches_the_deployment_all_the_time_only_costs_turns() -> None:
    cluster = world(UP)
    chaos = Chaos(cluster, happens={at: lambda: cluster.touch(DEPLOYMENT) for at in range(1, 150, 2)})
    chaos.run()
    assert cluster.status("plan-1").phase is Phase.SUCCEEDED
    assert not twice(cluster)


def test_a_count_that_somebody_else_sets_meanwhile_is_left_so_and_the_plan_is_stuck() -> None:
    cluster = world(UP)
    status = ended(cluster, when(cluster, Phase.RUNNING, 2, lambda: cluster.scale(DEPLOYMENT, 9)))
    assert (status.phase, status.ended) == (Phase.STUCK, "between")
    assert "somebody set Deployment billing-consumer to 9 replicas" in status.message
    assert cluster.deployments[DEPLOYMENT].replicas == 9
    assert cluster.deployments[DEPLOYMENT].claim is not None


def test_a_count_that_somebody_else_sets_back_ends_in_the_old_state() -> None:
    cluster = world(UP)
    status = ended(cluster, when(cluster, Phase.RUNNING, 2, lambda: cluster.scale(DEPLOYMENT, 3)))
    assert status.phase is Phase.ROLLED_BACK
    assert "set Deployment billing-consumer back to 3 replicas" in status.message
    assert is_old(cluster)


def test_a_claim_that_is_taken_away_turns_the_plan_back() -> None:
    cluster = world(UP)

    def unclaim() -> None:
        cluster.deployments[DEPLOYMENT].claim = None
        cluster.touch(DEPLOYMENT)

    status = ended(cluster, when(cluster, Phase.RUNNING, 2, unclaim))
    assert status.phase is Phase.ROLLED_BACK
    assert "took the claim away" in status.message
    assert is_old(cluster)


def test_a_deployment_that_is_deleted_meanwhile_is_not_made_again() -> None:
    cluster = world(UP)
    status = ended(cluster, when(cluster, Phase.RUNNING, 2, cluster.deployments.clear))
    assert status.phase is Phase.STUCK
    assert "Deployment billing-consumer is gone" in status.message
    assert not cluster.deployments


def test_an_autoscaler_that_takes_over_meanwhile_turns_the_plan_back() -> None:
    cluster = world(UP)

    def take_over() -> None:
        cluster.deployments[DEPLOYMENT].autoscalers = (Autoscaler("HorizontalPodAutoscaler", "hpa", 1, 10),)

    status = ended(cluster, when(cluster, Phase.RUNNING, 2, take_over))
    assert status.phase is Phase.ROLLED_BACK
    assert [refusal.code for refusal in status.refusals] == ["Autoscaled"]
    assert cluster.deployments[DEPLOYMENT].replicas == 3
    assert untouched(cluster)


def edit(cluster: FakeCluster) -> None:
    """Somebody changes the spec, past all rules: fewer steps, another digest."""
    now = cluster.plans["plan-1"]
    plan = replace(now.plan, steps=now.plan.steps[:1])
    cluster.put(replace(now, plan=plan, digest="sha256:other", resource_version=cluster._next()))


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.PAUSED, Phase.ABORTING])
def test_a_plan_that_is_edited_under_way_is_stuck_as_nobody_can_tell_its_way_back(phase: Phase) -> None:
    cluster = world(UP)
    asked = {Phase.PAUSED: {"pause": True}, Phase.ABORTING: {"abort": True}}.get(phase, {})
    first = when(cluster, Phase.RUNNING, 2, lambda: cluster.ask("plan-1", **asked))
    then = when(cluster, phase, 2, lambda: edit(cluster))

    def both(number: int) -> None:
        first(number)
        then(number)

    status = ended(cluster, both)
    assert status.phase is Phase.STUCK
    assert "was changed while it was carried out" in status.message


def test_a_plan_that_is_edited_after_its_last_step_ends_without_a_verdict_on_its_forecast() -> None:
    cluster = world(UP)
    status = ended(cluster, when(cluster, Phase.VERIFYING, 2, lambda: edit(cluster)))
    assert status.phase is Phase.SUCCEEDED
    assert status.verdict is not None
    assert not status.verdict.figures
    assert untouched(cluster)


@pytest.mark.parametrize("asked", [{"abort": True}, {"is_deleted": True}], ids=str)
def test_an_abort_after_the_last_step_ends_the_plan_without_waiting_for_what_was_not_seen(
    asked: dict[str, bool],
) -> None:
    cluster = world(UP)
    cluster.seen = replace(cluster.seen, is_complete=False)
    asked_at: list[float] = []

    def ask() -> None:
        asked_at.append(cluster.now_s)
        cluster.ask("plan-1", **asked)

    assert drive(cluster, meanwhile=when(cluster, Phase.VERIFYING, 5, ask)).outcome is Outcome.DONE
    assert cluster.now_s - asked_at[0] < LIMIT_S / 4
    assert cluster.deployments[DEPLOYMENT].replicas == 5
    assert untouched(cluster)


def test_what_could_not_be_read_is_told_with_its_cause() -> None:
    cluster = world(UP)
    original = cluster.observe

    def look(stored: StoredPlan, now: datetime) -> Observation:
        return replace(original(stored, now), groups=(), problems=("the broker refuses the connection",))

    cluster.observe = look  # type: ignore[method-assign]
    for _ in range(5):
        run_reconcile(ports(cluster), "plan-1", "one")
    held = cluster.status("plan-1").held
    assert held == "group billing could not be read; the broker refuses the connection"


def jumping(cluster: FakeCluster, hours: int) -> Ports:
    """Return ports whose clock jumps once the first step has begun; the cluster's own does not."""

    def now() -> datetime:
        begun = cluster.status("plan-1").steps
        return cluster.now + timedelta(hours=hours if begun else 0)

    return replace(ports(cluster), clock=now)


def test_a_clock_that_jumps_ahead_turns_the_plan_back_by_name() -> None:
    cluster = world(UP)
    drive(cluster, through=jumping(cluster, 5))
    status = cluster.status("plan-1")
    assert status.phase is Phase.ROLLED_BACK
    assert "startConsumers could not be done within 120 s" in status.message
    assert is_old(cluster)


def test_a_clock_that_goes_back_only_makes_limits_longer() -> None:
    cluster = world(UP)
    drive(cluster, through=jumping(cluster, -5))
    assert cluster.status("plan-1").phase is Phase.SUCCEEDED
    assert not twice(cluster)


def test_a_node_that_is_gone_makes_the_plan_wait_until_its_pods_run_elsewhere() -> None:
    cluster = world(UP)
    lost = cluster.live(DEPLOYMENT)[:2]

    def gone() -> None:
        for pod in lost:
            cluster.crash(pod, 10_000.0)

    hook = when(cluster, Phase.RUNNING, 2, gone)

    def node(number: int) -> None:
        hook(number)
        if lost[0].broken_until and cluster.now_s > lost[0].broken_until - 10_000.0 + 50:
            for pod in lost:
                cluster.evict(pod)

    status = ended(cluster, node)
    assert status.phase is Phase.SUCCEEDED
    assert ("Held", "plan-1: group billing has 2 of 4 members") in cluster.told


def test_a_paused_plan_does_nothing_and_its_pause_counts_for_no_limit() -> None:
    cluster = world(UP)
    since: list[float] = []

    def pauses() -> None:
        cluster.ask("plan-1", pause=True)
        cluster.crash(cluster.live(DEPLOYMENT)[0], 2.0 * LIMIT_S)
        since.append(cluster.now_s)

    hook = when(cluster, Phase.RUNNING, 1, pauses)

    def pause(number: int) -> None:
        hook(number)
        if since and cluster.now_s > since[0] + 1.5 * LIMIT_S:
            cluster.ask("plan-1", pause=False)

    status = ended(cluster, pause)
    assert status.phase is Phase.SUCCEEDED
    assert status.steps[1].paused_s > LIMIT_S
    assert len(cluster.touched) == 2


def test_what_changes_between_the_start_and_the_first_effect_is_still_refused() -> None:
    cluster = world(UP)
    status = ended(cluster, when(cluster, Phase.RUNNING, 0, lambda: cluster.crash(cluster.live(DEPLOYMENT)[0], 60.0)))
    assert status.phase is Phase.ROLLED_BACK
    assert "MembersChanged" in [refusal.code for refusal in status.refusals]
    assert {touched.before == touched.after for touched in cluster.touched} == {True}


def test_the_old_state_is_there_again_only_once_its_pods_are_ready() -> None:
    cluster = world(DOWN)
    status = ended(cluster, when(cluster, Phase.RUNNING, 2, lambda: cluster.ask("plan-1", abort=True)))
    assert status.phase is Phase.ROLLED_BACK
    assert cluster.ready == 5


def test_a_template_comes_back_once_nobody_of_the_one_after_the_next_is_there() -> None:
    """Members of the first and the third have no assignor in common where those of the second have both."""
    cluster = world(ROLLED_TWICE)
    meet: list[int] = []

    def look(what: str) -> None:
        if what == "perform RestoreTemplate":
            meet.append(sum(pod.deployment == DEPLOYMENT for pod in cluster.pods))

    hook = when(cluster, Phase.RUNNING, 4, lambda: cluster.ask("plan-1", abort=True))
    drive(cluster, through=ports(cluster, look), meanwhile=hook)
    assert cluster.status("plan-1").phase is Phase.ROLLED_BACK
    assert is_old(cluster)
    assert meet[-1] == 3


def test_a_template_comes_back_once_no_member_is_left_without_its_pod() -> None:
    cluster = world(ROLLED_TWICE)
    hook = when(cluster, Phase.RUNNING, 4, lambda: cluster.ask("plan-1", abort=True))
    ghosts: list[float] = []

    def killed(number: int) -> None:
        hook(number)
        if cluster.status("plan-1").phase is Phase.ABORTING and not ghosts:
            cluster.faults.ghosts = ("10.0.0.1@killed",)
            ghosts.append(cluster.now_s)
        if ghosts and cluster.now_s > ghosts[0] + 45:
            cluster.faults.ghosts = ()

    assert ended(cluster, killed).phase is Phase.ROLLED_BACK
    assert is_old(cluster)
    assert ("Held", "plan-1: group billing has 4 members, 3 are to stay") in cluster.told


def test_new_consumers_are_not_stopped_while_too_few_old_ones_are_ready_again() -> None:
    cluster = world(BLUE_GREEN)
    aborts = when(cluster, Phase.RUNNING, 5, lambda: cluster.ask("plan-1", abort=True))
    fallen: list[float] = []

    def hook(number: int) -> None:
        aborts(number)
        steps = cluster.status("plan-1").steps
        if not fallen and len(steps) > 4 and steps[4].undone_at is not None:
            fallen.append(cluster.now_s)
            for pod in cluster.live(DEPLOYMENT):
                cluster.crash(pod, 30.0)

    status = ended(cluster, hook)
    assert fallen
    assert status.phase is Phase.ROLLED_BACK
    assert is_old(cluster)
    assert cluster.lowest_ready == 3
    assert ("Held", "plan-1: only 0 consumers would stay ready, 3 must") in cluster.told


def settling() -> tuple[FakeCluster, StoredPlan]:
    """Return a plan whose group was found settled once."""
    cluster = world(UP)
    for _ in range(200):
        if any(step.seen for step in cluster.status("plan-1").steps):
            return cluster, cluster.plans["plan-1"]
        run_reconcile(ports(cluster), "plan-1", "one")
        cluster.advance(0.5)
    raise AssertionError("the group never settled")


def test_a_group_is_settled_only_when_nothing_changed_between_two_looks() -> None:
    cluster, made = settling()
    cluster.advance(6.0)
    look = cluster.observe(made, cluster.now)
    (group,) = look.groups
    again = decide(made, look, cluster.now)
    assert isinstance(again, Write)
    assert again.status.steps[-1].finished_at is not None
    other = decide(made, replace(look, groups=(replace(group, epoch=7),)), cluster.now)
    assert isinstance(other, Write)
    assert other.status.steps[-1].finished_at is None
    assert other.status.steps[-1].seen != made.status.steps[-1].seen


def test_a_group_is_not_settled_while_queues_of_the_plan_are_in_no_route() -> None:
    """A RocketMQ broker that dies is out of the name server's answer at once: the rest looks settled on its own."""
    cluster, made = settling()
    cluster.advance(6.0)
    look = cluster.observe(made, cluster.now)
    (group,) = look.groups
    assert group.queues is not None
    assert group.owners is not None
    less = replace(group, queues=group.queues[1:], owners=group.owners[1:], epoch=group.epoch)
    move = decide(made, replace(look, groups=(less,)), cluster.now)
    assert isinstance(move, Write)
    assert move.status.steps[-1].seen is None, "what was seen before counts no more"
    forgotten = replace(made, status=move.status)
    waiting = decide(forgotten, replace(look, groups=(less,)), cluster.now)
    assert isinstance(waiting, Write)
    assert waiting.status.held == f"1 queue of group billing is in no route: {group.queues[0]}: is their broker up?"


def test_a_lag_is_not_low_while_queues_of_the_plan_are_in_no_route() -> None:
    cluster, made = settling()
    index, steps = made.status.step, list(made.plan.steps)
    steps[index] = AwaitLag(LIMIT_S, messages=10)
    made = replace(made, plan=replace(made.plan, steps=tuple(steps)))
    look = cluster.observe(made, cluster.now)
    (group,) = look.groups
    assert group.queues is not None
    rest = replace(group, lag_messages=0, queues=group.queues[1:])
    less = decide(made, replace(look, groups=(rest,)), cluster.now)
    assert isinstance(less, Write)
    assert "is in no route" in (less.status.held or "")
    whole = decide(made, replace(look, groups=(replace(rest, queues=group.queues),)), cluster.now)
    assert isinstance(whole, Write)
    assert whole.status.steps[-1].finished_at is not None


def test_two_looks_at_one_moment_are_one_look() -> None:
    cluster, made = settling()
    move = decide(made, cluster.observe(made, made.status.steps[-1].seen_at or cluster.now), cluster.now)
    assert isinstance(move, Wait) or (isinstance(move, Write) and move.status.steps[-1].finished_at is None)


@pytest.mark.parametrize("seconds", [-7_200.0, -20.0, 20.0])
def test_a_clock_of_the_server_that_jumps_while_a_group_settles_holds_nothing_up(seconds: float) -> None:
    """Red when an observation is compared with one of a time to come: the plan waits two hours for it."""
    cluster = world(UP)
    left = [seconds]

    def jump(_: int) -> None:
        if left and cluster.status("plan-1").held == "settled once, to be seen again":
            cluster.jumped_s = left.pop()

    status = ended(cluster, jump)
    assert not left
    assert (status.phase, status.ended) == (Phase.SUCCEEDED, "new")
    assert cluster.now_s < 1_000.0 + LIMIT_S


def test_an_executor_whose_status_is_old_does_not_do_again_what_is_being_undone() -> None:
    cluster = world(UP)
    for _ in range(6):
        run_reconcile(ports(cluster), "plan-1", "one")
        cluster.advance(0.2)
    old = cluster.plans["plan-1"]
    assert old.status.phase is Phase.RUNNING
    found = cluster.deployments[DEPLOYMENT]
    found.replicas, found.claim = 3, str(Claim(old.key, 0, is_undoing=True))
    move = decide(old, cluster.observe(old, cluster.now), cluster.now)
    assert isinstance(move, Write)
    assert move.status.phase is Phase.ABORTING


def test_a_plan_that_is_deleted_while_it_runs_is_undone_first() -> None:
    cluster = world(UP)
    ended_turn = drive(
        cluster, meanwhile=when(cluster, Phase.RUNNING, 2, lambda: cluster.ask("plan-1", is_deleted=True))
    )
    assert "aborted by a person" in ended_turn.why
    assert "plan-1" not in cluster.plans
    assert is_old(cluster)


def test_a_plan_that_somebody_let_go_before_it_ran_is_held_again_and_undone_when_it_is_deleted() -> None:
    cluster = world(UP)
    running = when(cluster, Phase.RUNNING, 2, lambda: cluster.ask("plan-1", is_deleted=True))

    def meanwhile(number: int) -> None:
        found = cluster.plans.get("plan-1")
        if found and found.status.phase is Phase.APPROVED and number < 10:
            cluster.plans["plan-1"] = replace(found, has_finalizer=False)
        running(number)

    cluster.faults.broker_down_until = cluster.now_s + 20
    assert drive(cluster, meanwhile=meanwhile).outcome is Outcome.DONE
    assert "plan-1" not in cluster.plans
    assert is_old(cluster)


def test_a_plan_at_its_end_does_nothing_when_it_is_applied_again() -> None:
    cluster = world(UP)
    drive(cluster)
    version, touched = cluster.plans["plan-1"].resource_version, list(cluster.touched)
    drive(cluster, executor="two")
    assert (cluster.plans["plan-1"].resource_version, cluster.touched) == (version, touched)


def test_an_abort_after_a_step_without_a_way_back_comes_too_late_and_is_told_so() -> None:
    cluster = world(MOVED)
    status = ended(cluster, when(cluster, Phase.RUNNING, 9, lambda: None))
    assert status.phase is Phase.SUCCEEDED
    cluster = world(MOVED)

    def aborted(_: int) -> None:
        if UNUSED not in cluster.deployments and not cluster.plans["plan-1"].requests.abort:
            cluster.ask("plan-1", abort=True)

    status = ended(cluster, aborted)
    assert (status.phase, status.ended) == (Phase.SUCCEEDED, "new")
    assert status.surprises == ("step 10 (deleteDeployment) cannot be undone, so the plan can only go on",)


@pytest.mark.parametrize("seen", ["own", "in part"])
@pytest.mark.parametrize("is_silent", [False, True])
def test_an_abort_finds_the_old_offsets_or_comes_too_late(seen: str, is_silent: bool) -> None:
    """Brokers are written to one after the other, so that offsets that are not all set may be set in part."""
    cluster, turns = rewinding(), count()

    def aborted(_: int) -> None:
        status = cluster.status("plan-1")
        is_noted = len(status.steps) == 4 and status.steps[-1].seen is not None
        if is_noted and not cluster.plans["plan-1"].requests.abort:
            cluster.offsets["billing"] = seen
            cluster.offsets_unknown = is_silent
            cluster.ask("plan-1", abort=True)
        elif cluster.offsets_unknown and next(turns) == 5:
            assert (status.phase, status.surprises) == (Phase.RUNNING, ())
            cluster.offsets_unknown = False

    status = ended(cluster, aborted)
    if seen == "own":
        assert (status.phase, status.ended, cluster.offsets["billing"]) == (Phase.ROLLED_BACK, "old", "own")
        assert not status.surprises
    else:
        assert (status.phase, status.ended, cluster.offsets["billing"]) == (Phase.SUCCEEDED, "new", "resetOffsets")
        assert status.surprises == ("step 4 (resetOffsets) cannot be undone, so the plan can only go on",)


def test_an_abort_before_it_was_noted_what_the_offsets_were_is_in_time_whoever_can_read_them() -> None:
    cluster = rewinding()
    cluster.offsets_unknown = True
    status = ended(cluster, when(cluster, Phase.RUNNING, 3, lambda: cluster.ask("plan-1", abort=True)))
    assert (status.phase, status.ended, cluster.offsets["billing"]) == (Phase.ROLLED_BACK, "old", "own")


def test_offsets_are_not_taken_for_set_while_queues_of_the_plan_are_in_no_route() -> None:
    """The brokers that are left tell the offsets that were wanted; the one that is away was perhaps never asked."""
    cluster = rewinding()
    for _ in range(200):
        if len(cluster.status("plan-1").steps) == 4:
            break
        run_reconcile(ports(cluster), "plan-1", "one")
        cluster.advance(0.5)
    made, look = (
        cluster.plans["plan-1"],
        replace(cluster.observe(cluster.plans["plan-1"], cluster.now), offsets_set=True),
    )
    group = look.groups[0]
    assert group.queues is not None
    less = decide(made, replace(look, groups=(replace(group, queues=group.queues[1:]),)), cluster.now)
    assert isinstance(less, Write)
    assert "is in no route" in (less.status.held or "")
    whole = decide(made, look, cluster.now)
    assert isinstance(whole, Write)
    assert whole.status.steps[-1].finished_at is not None


def rewinding() -> FakeCluster:
    """Return a cluster whose group is to go back to a time."""
    cluster = FakeCluster(3)
    made = stored(cluster, rewound(cluster), migration="rewound")
    cluster.put(replace(made, requests=replace(made.requests, confirmed=made.plan.confirmations)))
    cluster.before = counts(cluster)
    return cluster


def test_offsets_are_set_only_after_somebody_typed_the_phrase() -> None:
    cluster = world(MOVED)
    cluster.ask("plan-1", confirmed=())
    for _ in range(20):
        run_reconcile(ports(cluster), "plan-1", "one")
        cluster.advance(1.0)
    assert cluster.status("plan-1").phase is Phase.PENDING
    assert cluster.status("plan-1").held == "waits for somebody to type 'set the offsets of billing-2'"
    assert not cluster.touched


def test_offsets_of_a_group_with_members_are_not_set() -> None:
    cluster = world(MOVED)
    cluster.deployments["other"] = FakeDeployment("other", "uid-other", 1, "billing-2")
    cluster.advance(1.0)
    cluster.advance(10.0)
    status = ended(cluster)
    assert status.phase is Phase.REFUSED
    assert [refusal.code for refusal in status.refusals] == ["GroupInUse"]


def test_a_person_who_is_asked_lets_the_plan_go_on_and_one_who_is_silent_does_not() -> None:
    steps = (PauseForPerson("does the dashboard look well?", LIMIT_S), *renewed(FakeCluster(3)))
    for answers, phase in ((True, Phase.SUCCEEDED), (False, Phase.ROLLED_BACK)):
        cluster = FakeCluster(3)
        stored(cluster, steps)
        cluster.before = counts(cluster)

        def answer(number: int, cluster: FakeCluster = cluster, answers: bool = answers) -> None:
            if answers and number == 20:
                cluster.ask("plan-1", answered=(0,))

        assert ended(cluster, answer).phase is phase
        assert ("Held", "plan-1: does the dashboard look well?") in cluster.told
        assert answers or is_old(cluster)


@pytest.mark.parametrize(("migration", "phase"), [("subscription", Phase.SUCCEEDED), ("update", Phase.ROLLED_BACK)])
def test_only_a_change_of_subscription_lets_a_whole_topic_go(migration: str, phase: Phase) -> None:
    """Members come back with refunds instead of orders; in an update the route of orders is lost."""
    cluster = FakeCluster(3)
    stored(cluster, renewed(cluster), migration=migration)

    def give_up(_: int) -> None:
        if len(cluster.status("plan-1").steps) > 1:
            cluster.queues = tuple(MessageQueue("refunds", "broker-a", number) for number in range(6))

    assert ended(cluster, give_up).phase is phase


LAST = MessageQueue("orders", "broker-a", 7)
GIVEN_UP = ("orders/broker-a/4-7",)


def shrinking(cluster: FakeCluster) -> None:
    """Store a plan that gives up the upper half of eight queues."""
    leave, drop = (PauseForPerson(f"{what} lowered?", LIMIT_S) for what in ("write queues", "read queues"))
    drained = AwaitLag(LIMIT_S, messages=0, queues=GIVEN_UP)
    steps = (leave, drained, drop, AwaitSettled(3, "AVG", LIMIT_S), CheckForecast(LIMIT_S))
    cluster.queues = tuple(MessageQueue("orders", "broker-a", number) for number in range(8))
    cluster.waiting = {LAST: 1}
    stored(cluster, steps, migration="shrink")
    cluster.ask("plan-1", answered=(0,))


def test_queues_that_are_given_up_are_empty_before_a_person_is_asked_to_take_them_away() -> None:
    cluster = FakeCluster(3)
    shrinking(cluster)
    waits: list[str] = []

    def look(number: int) -> None:
        status = cluster.status("plan-1")
        waits.append(status.held or "")
        if number == 20:
            assert len(status.steps) == 2, "one message waits in one of the queues"
            cluster.waiting = {MessageQueue("orders", "broker-a", 0): 5}  # it stays, and is nobody's matter
        if len(status.steps) == 3:
            cluster.queues = cluster.queues[:4]
            cluster.ask("plan-1", answered=(0, 2))

    status = ended(cluster, look)
    assert status.phase is Phase.SUCCEEDED, status
    assert "group billing is further behind than 0 messages" in waits


def test_queues_that_are_taken_away_while_messages_wait_in_them_are_told() -> None:
    cluster = FakeCluster(3)
    shrinking(cluster)
    told: list[str] = []

    def look(number: int) -> None:
        told.append(cluster.status("plan-1").held or "")
        if number == 20:
            cluster.queues = cluster.queues[:4]

    assert ended(cluster, look).phase is not Phase.SUCCEEDED
    assert any("4 queues of group billing are in no route: orders/broker-a/4" in sentence for sentence in told)


@pytest.mark.parametrize("queues", [12, 4])
def test_queues_that_a_person_was_asked_for_are_no_difference_and_lost_ones_are(queues: int) -> None:
    cluster = FakeCluster(3)
    cluster.set_scaler(DEPLOYMENT, HPA)
    *grow, let_go, check = pinned(cluster)
    question = PauseForPerson("does topic orders have 12 queues now?", LIMIT_S)
    stored(cluster, (*grow, question, AwaitSettled(5, "AVG", LIMIT_S), let_go, check), migration="expand")

    def raise_queues() -> None:
        cluster.queues = tuple(MessageQueue("orders", "broker-a", number) for number in range(queues))
        cluster.ask("plan-1", answered=(len(grow),))

    status = ended(cluster, when(cluster, Phase.RUNNING, len(grow), raise_queues))
    assert status.phase is (Phase.SUCCEEDED if queues == 12 else Phase.ROLLED_BACK), status
