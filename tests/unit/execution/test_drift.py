"""Between planning and applying anything may change: nothing that changed is carried out, and the refusal says what."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from planner.execution.codes import Code
from planner.execution.effects import SetClaim
from planner.execution.engine import decide
from planner.execution.moves import Move, Perform, Wait, Write
from planner.execution.observation import Claim, DeploymentObservation, GroupObservation, Observation, Rival
from planner.execution.phases import Phase
from planner.execution.ports import Requests, StoredPlan
from planner.execution.progress import Approval, RolloutStatus
from planner.model.autoscalers import Autoscaler
from planner.model.deployments import Deployment, Ordinals
from planner.model.queues import MessageQueue
from planner.rollout.autoscalers import Handling
from planner.rollout.bounds import PolicyBounds
from planner.rollout.steps import CreateDeployment, MarkVictims, StopConsumers, UpdateTemplate, Victim
from planner.rollout.targets import Target
from planner.text.words import duration
from tests.unit.execution.fake import START, FakeCluster
from tests.unit.execution.worlds import CHANGE, DEPLOYMENT, LIMIT_S, MOVES, SCENARIOS, stored, world

CHANGES = 10_000


@dataclass(frozen=True)
class Case:
    """A plan, a look and a time that fit each other, and what is said of the one thing that no longer fits."""

    stored: StoredPlan
    look: Observation
    now: datetime
    says: str = ""
    code: Code | None = None

    @property
    def deployment(self) -> DeploymentObservation:
        found = self.look.deployment(DEPLOYMENT)
        assert found is not None
        return found

    @property
    def facts(self) -> Deployment:
        assert self.deployment.facts is not None
        return self.deployment.facts

    @property
    def group(self) -> GroupObservation:
        found = self.look.group("billing")
        assert found is not None
        return found

    def with_deployment(self, **changes: object) -> Observation:
        changed = replace(self.deployment, **changes)  # type: ignore[arg-type]
        others = tuple(one for one in self.look.deployments if one.name != DEPLOYMENT)
        return replace(self.look, deployments=(changed, *others))

    def with_facts(self, **changes: object) -> Observation:
        return self.with_deployment(facts=replace(self.facts, **changes))  # type: ignore[arg-type]

    def with_group(self, **changes: object) -> Observation:
        changed = replace(self.group, **changes)  # type: ignore[arg-type]
        return replace(self.look, groups=(changed, *(one for one in self.look.groups if one.name != "billing")))


def case(cluster: FakeCluster) -> Case:
    """Return a plan that was approved, and a look that it fits."""
    made = cluster.plans["plan-1"]
    approved = RolloutStatus(Phase.APPROVED, "approved", START, approval=made.requests.approval)
    made = replace(made, status=approved)
    return Case(made, cluster.observe(made, cluster.now), cluster.now)


Change = Callable[[Case, random.Random], Case]


def replicas(it: Case, chance: random.Random) -> Case:
    now = chance.choice([n for n in range(30) if n != it.facts.replicas])
    return replace(it, look=it.with_facts(replicas=now), code=Code.REPLICAS_CHANGED, says=f"has {now} replicas")


def member_left(it: Case, chance: random.Random) -> Case:
    gone = chance.choice(it.group.members or ())
    left = tuple(member for member in it.group.members or () if member != gone)
    return replace(it, look=it.with_group(members=left), code=Code.MEMBERS_CHANGED, says=f"{gone} left")


def member_joined(it: Case, chance: random.Random) -> Case:
    new = f"10.0.{chance.randint(1, 250)}.9@other"
    look = it.with_group(members=(*(it.group.members or ()), new))
    return replace(it, look=look, code=Code.MEMBERS_CHANGED, says=f"{new} joined")


def member_renamed(it: Case, chance: random.Random) -> Case:
    at = chance.randrange(len(it.group.members or ()))
    members = list(it.group.members or ())
    old, members[at] = members[at], f"{members[at]}#2"
    return replace(it, look=it.with_group(members=tuple(members)), code=Code.MEMBERS_CHANGED, says=f"{old} left")


def queue_gone(it: Case, chance: random.Random) -> Case:
    gone = chance.choice(it.group.queues or ())
    queues = tuple(queue for queue in it.group.queues or () if queue != gone)
    return replace(it, look=it.with_group(queues=queues), code=Code.QUEUES_CHANGED, says=f"{gone} gone")


def queue_added(it: Case, chance: random.Random) -> Case:
    new = MessageQueue("orders", f"broker-{chance.choice('bcd')}", chance.randrange(16))
    look = it.with_group(queues=(*(it.group.queues or ()), new))
    return replace(it, look=look, code=Code.QUEUES_CHANGED, says=f"{new} new")


def queue_swapped(it: Case, chance: random.Random) -> Case:
    queues = list(it.group.queues or ())
    at = chance.randrange(len(queues))
    old, queues[at] = queues[at], MessageQueue("orders", "broker-z", at)
    return replace(it, look=it.with_group(queues=tuple(queues)), code=Code.QUEUES_CHANGED, says=f"{old} gone")


def owner_moved(it: Case, chance: random.Random) -> Case:
    owners = list(it.group.owners or ())
    at = chance.randrange(len(owners))
    queue, (old,) = owners[at]
    to = chance.choice([member for member in it.group.members or () if member != old])
    owners[at] = queue, (to,)
    look = it.with_group(owners=tuple(owners))
    return replace(it, look=look, code=Code.OWNERS_CHANGED, says=f"{queue} from {old} to {to}")


def owner_doubled(it: Case, chance: random.Random) -> Case:
    owners = list(it.group.owners or ())
    at = chance.randrange(len(owners))
    queue, (old,) = owners[at]
    to = chance.choice([member for member in it.group.members or () if member != old])
    owners[at] = queue, (old, to)
    look = it.with_group(owners=tuple(owners))
    return replace(it, look=look, code=Code.OWNERS_CHANGED, says=f"to {old} and {to}")


def owner_lost(it: Case, chance: random.Random) -> Case:
    owners = list(it.group.owners or ())
    at = chance.randrange(len(owners))
    queue, (old,) = owners[at]
    owners[at] = queue, ()
    look = it.with_group(owners=tuple(owners))
    return replace(it, look=look, code=Code.OWNERS_CHANGED, says=f"{queue} from {old} to nobody")


def strategy(it: Case, chance: random.Random) -> Case:
    now = chance.choice(["AVG_BY_CIRCLE", "CONSISTENT_HASH", "CONFIG", "MACHINE_ROOM"])
    return replace(it, look=it.with_group(strategy=now), code=Code.STRATEGY_CHANGED, says=f"allocates by {now}")


def rebalancing(it: Case, _: random.Random) -> Case:
    return replace(it, look=it.with_group(is_rebalancing=True), code=Code.NOT_SETTLED, says="is rebalancing")


def misplaced(it: Case, chance: random.Random) -> Case:
    wrong = chance.randint(1, 8)
    return replace(it, look=it.with_group(misplaced=wrong), code=Code.NOT_SETTLED, says=f"{wrong} queue")


def policy(it: Case, chance: random.Random) -> Case:
    now = f"policy-{chance.randint(2, 10**6)}"
    return replace(it, look=replace(it.look, policy_digest=now), code=Code.POLICY_CHANGED, says=f"its digest is {now}")


def outside(it: Case, chance: random.Random) -> Case:
    plan = it.stored.plan
    bounds = PolicyBounds(plan.policy, plan.deployment, plan.group, 1, 100, 3_600, Handling("setBounds"))
    bounds = replace(bounds, targets=tuple(Target(each.name) for each in plan.targets or ()))
    group = replace(plan.group, group="other")
    ways: list[dict[str, object]] = [
        {"targets": (Target("other"), Target("another"))} if plan.targets else {"deployment": "other"},
        {"valid_for_s": 60},
        {"policy": "other"},
        {"group": group},
    ]
    way = chance.choice(ways)
    name, value = next(iter(way.items()))
    told = f"allows {duration(value)}" if name == "valid_for_s" else "other"
    look = replace(it.look, bounds=replace(bounds, **way))  # type: ignore[arg-type]
    return replace(it, look=look, code=Code.OUTSIDE_POLICY, says=told)


def spec(it: Case, chance: random.Random) -> Case:
    now = f"sha256:{chance.getrandbits(64):x}"
    return replace(it, stored=replace(it.stored, digest=now), code=Code.DIGEST_DIFFERS, says=f"the plan has {now}")


def approval(it: Case, chance: random.Random) -> Case:
    other = Approval(f"sha256:{chance.getrandbits(64):x}", "mallory", START)
    asked = replace(it.stored.requests, approval=other)
    return replace(
        it, stored=replace(it.stored, requests=asked), code=Code.DIGEST_DIFFERS, says=f"names digest {other.digest}"
    )


def unapproved(it: Case, _: random.Random) -> Case:
    made = replace(it.stored, requests=Requests())
    return replace(it, stored=made, code=Code.DIGEST_DIFFERS, says="approval was taken back")


def late(it: Case, chance: random.Random) -> Case:
    now = it.stored.plan.valid_until + timedelta(seconds=chance.randint(0, 10**6))
    look = replace(it.look, at=now, groups=tuple(replace(group, at=now) for group in it.look.groups))
    return replace(it, now=now, look=look, code=Code.EXPIRED, says="was valid until")


def old(it: Case, chance: random.Random) -> Case:
    age = timedelta(minutes=chance.randint(61, 10_000))
    rests_on = replace(it.stored.plan.snapshot, at=it.now - age)
    made = replace(it.stored, plan=replace(it.stored.plan, snapshot=rests_on))
    return replace(it, stored=made, code=Code.OLD_SNAPSHOT, says=f"{age.total_seconds() / 60:.0f} min old")


def autoscaled(it: Case, chance: random.Random) -> Case:
    kind = chance.choice(["HorizontalPodAutoscaler", "ScaledObject"])
    scaler = Autoscaler(kind, f"scaler-{chance.randint(1, 99)}", 1, 10)
    look = it.with_facts(autoscalers=(scaler,))
    return replace(it, look=look, code=Code.AUTOSCALED, says=f"{kind} {scaler.name}")


def gone(it: Case, _: random.Random) -> Case:
    look = it.with_deployment(facts=None, claim=None)
    return replace(it, look=look, code=Code.DEPLOYMENT_MISSING, says=f"no Deployment {DEPLOYMENT}")


def rival(it: Case, chance: random.Random) -> Case:
    ref = it.stored.plan.group
    group = (ref.system, ref.cluster, ref.group)
    same_group = chance.random() < 0.5
    other = Rival(
        plan="plan-2/uid",
        name="plan-2",
        phase=chance.choice([phase for phase in Phase if phase.is_in_progress]),
        group=group if same_group else ("rocketmq", "c", "other"),
        deployments=("other",) if same_group else (DEPLOYMENT,),
    )
    return replace(it, look=replace(it.look, rivals=(other,)), code=Code.OTHER_PLAN, says=f"plan-2 is {other.phase}")


def claimed(it: Case, chance: random.Random) -> Case:
    other = Rival("plan-2/uid", "plan-2", Phase.RUNNING, ("rocketmq", "c", "other"), ("other",))
    look = it.with_deployment(claim=Claim("plan-2/uid", chance.randint(-1, 5)))
    return replace(it, look=replace(look, rivals=(other,)), code=Code.CLAIMED, says="plan-2 (Running) has claimed")


def other_group(it: Case, _: random.Random) -> Case:
    pods = tuple((member, f"stranger-{number}") for number, member in enumerate(it.group.members or ()))
    return replace(it, look=it.with_group(pods=pods), code=Code.SERVES_OTHER_GROUP, says="stranger-0")


def withdrawn(it: Case, chance: random.Random) -> Case:
    is_deleted = chance.random() < 0.5
    asked = replace(it.stored.requests, abort=not is_deleted, is_deleted=is_deleted)
    return replace(it, stored=replace(it.stored, requests=asked), code=Code.WITHDRAWN, says="withdrawn by a person")


def victim_gone(it: Case, chance: random.Random) -> Case:
    marks = [step for step in it.stored.plan.steps if isinstance(step, MarkVictims)]
    if not marks:
        return member_left(it, chance)
    victim = chance.choice(marks[0].pods)
    pods = tuple(replace(pod, is_ending=pod.name == victim) for pod in it.facts.pods or ())
    return replace(it, look=it.with_facts(pods=pods), code=Code.VICTIM_GONE, says=f"pod {victim}")


def victim_moved(it: Case, chance: random.Random) -> Case:
    marks = [step for step in it.stored.plan.steps if isinstance(step, MarkVictims)]
    if not marks:
        return member_joined(it, chance)
    (member,) = chance.choice(marks[0].victims).members
    pods = tuple((one, "elsewhere" if one == member else pod) for one, pod in it.group.pods)
    return replace(it, look=it.with_group(pods=pods), code=Code.VICTIM_MOVED, says=f"{member} runs in pod elsewhere")


def name_taken(it: Case, chance: random.Random) -> Case:
    made = [step for step in it.stored.plan.steps if isinstance(step, CreateDeployment)]
    if not made:
        return replicas(it, chance)
    there = DeploymentObservation(made[0].deployment, replace(it.facts, name=made[0].deployment))
    others = tuple(one for one in it.look.deployments if one.name != there.name)
    look = replace(it.look, deployments=(*others, there))
    return replace(it, look=look, code=Code.NAME_TAKEN, says=f"creates Deployment {made[0].deployment}")


def group_in_use(it: Case, chance: random.Random) -> Case:
    other = it.look.group("billing-2")
    if other is None:
        return owner_lost(it, chance)
    look = replace(it.look, groups=(it.group, replace(other, members=("somebody",))))
    return replace(it, look=look, code=Code.GROUP_IN_USE, says="billing-2 has members: somebody")


def revision(it: Case, chance: random.Random) -> Case:
    if not any(isinstance(step, UpdateTemplate) for step in it.stored.plan.steps):
        return strategy(it, chance)
    now = chance.randint(2, 99)
    return replace(it, look=it.with_deployment(revision=now), code=Code.REVISION_CHANGED, says=f"at revision {now}")


def rollout_paused(it: Case, chance: random.Random) -> Case:
    if not any(isinstance(step, UpdateTemplate) for step in it.stored.plan.steps):
        return queue_gone(it, chance)
    return replace(it, look=it.with_facts(is_paused=True), code=Code.ROLLOUT_PAUSED, says="is paused")


def not_ready(it: Case, chance: random.Random) -> Case:
    pods = list(it.facts.pods or ())
    at = chance.randrange(len(pods))
    pods[at] = replace(pods[at], is_ready=False)
    return replace(it, look=it.with_facts(pods=tuple(pods)), says=f"{len(pods) - 1} of {len(pods)} pods")


def unknown(it: Case, chance: random.Random) -> Case:
    """One part of the look is missing: the plan waits and says for what."""
    looks: list[tuple[Observation, str]] = [
        (it.with_group(members=None), "the members of group billing could not be read"),
        (it.with_group(queues=None), "the routes of group billing could not be read"),
        (it.with_group(owners=None), "whether group billing is settled could not be read"),
        (it.with_group(misplaced=None), "whether group billing is settled could not be read"),
        (it.with_group(is_rebalancing=None), "whether group billing is settled could not be read"),
        (it.with_group(strategy=None), "the strategy of group billing is unknown"),
        (it.with_group(at=it.now - timedelta(minutes=5)), "group billing could not be read"),
        (replace(it.look, groups=()), "group billing could not be read"),
        (replace(it.look, rivals=None), "whether another plan is under way could not be read"),
        (replace(it.look, policy_digest=None), "policy billing could not be read"),
        (it.with_facts(pods=None), f"the pods of Deployment {DEPLOYMENT} could not be read"),
        (it.with_facts(autoscalers=None), f"whether an autoscaler owns Deployment {DEPLOYMENT} could not be read"),
        (replace(it.look, deployments=()), f"Deployment {DEPLOYMENT} could not be read"),
    ]
    if any(isinstance(step, UpdateTemplate) for step in it.stored.plan.steps):
        looks.append((it.with_deployment(revision=None), f"the revision of Deployment {DEPLOYMENT} could not be read"))
    look, says = chance.choice(looks)
    return replace(it, look=look, says=says)


ALL: tuple[Change, ...] = (
    replicas,
    member_left,
    member_joined,
    member_renamed,
    queue_gone,
    queue_added,
    queue_swapped,
    owner_moved,
    owner_doubled,
    owner_lost,
    strategy,
    rebalancing,
    misplaced,
    outside,
    policy,
    spec,
    approval,
    unapproved,
    late,
    old,
    autoscaled,
    gone,
    rival,
    claimed,
    other_group,
    withdrawn,
    victim_gone,
    victim_moved,
    name_taken,
    group_in_use,
    revision,
    rollout_paused,
    not_ready,
    unknown,
)


def answer(it: Case) -> Move:
    return decide(it.stored, it.look, it.now)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario[0])
def test_a_plan_that_fits_is_claimed_and_then_begins(scenario: tuple[str, int, int, object]) -> None:
    it = case(world(scenario))  # type: ignore[arg-type]
    move = answer(it)
    assert isinstance(move, Perform)
    while isinstance(move, Perform):
        assert isinstance(move.effect, SetClaim)
        claimed = [
            replace(d, claim=move.effect.claim) if d.name == move.effect.deployment else d for d in it.look.deployments
        ]
        it = replace(it, look=replace(it.look, deployments=tuple(claimed)))
        move = answer(it)
    assert isinstance(move, Write)
    assert move.status.phase is Phase.RUNNING


def refused(move: Move, it: Case) -> str | None:
    """Return what is wrong with the answer to a case that no longer fits, ``None`` when it is right."""
    if isinstance(move, Wait):
        return f"waits without a word in the status: {move.why}"
    if not isinstance(move, Write):
        return f"went on: {move}"
    if it.code is None:
        right = move.status.phase is Phase.APPROVED and it.says in (move.status.held or "")
        return None if right else f"{move.status.phase}, held {move.status.held}, instead of {it.says}"
    if move.status.phase not in (Phase.REFUSED, Phase.EXPIRED, Phase.PENDING):
        return f"{move.status.phase}"
    sentences = [refusal.sentence for refusal in move.status.refusals if refusal.code == it.code]
    named = any(it.says in sentence for sentence in sentences) and it.says in move.status.message
    return None if named else f"{move.status.refusals} does not say {it.code}: {it.says}"


def test_ten_thousand_single_changes_are_none_of_them_carried_out_and_each_is_named() -> None:
    cases = [case(world(scenario)) for scenario in SCENARIOS]
    chance = random.Random(7)
    wrong = []
    for number in range(CHANGES):
        change = ALL[number % len(ALL)]
        it = change(chance.choice(cases), chance)
        problem = refused(answer(it), it)
        if problem is not None:
            wrong.append((change.__name__, problem))
    assert not wrong, wrong[:5]


def test_every_code_is_found_by_some_change() -> None:
    cases = [case(world(scenario)) for scenario in SCENARIOS]
    chance = random.Random(1)
    found = {change(it, chance).code for change in ALL for it in cases}
    assert set(Code) <= found


def test_a_claim_of_a_plan_that_is_over_binds_nobody() -> None:
    it = case(world(SCENARIOS[0]))
    abandoned = replace(it, look=it.with_deployment(claim=Claim("plan-0/uid", 3)))
    move = answer(abandoned)
    assert isinstance(move, Perform)
    assert move.effect == SetClaim(DEPLOYMENT, Claim(it.stored.key), it.facts.resource_version)


def test_a_claim_of_a_plan_that_has_not_begun_is_waited_for() -> None:
    it = case(world(SCENARIOS[0]))
    other = Rival("plan-2/uid", "plan-2", Phase.APPROVED, ("rocketmq", "c", "other"), (DEPLOYMENT,))
    look = replace(it.with_deployment(claim=Claim("plan-2/uid")), rivals=(other,))
    move = answer(replace(it, look=look))
    assert isinstance(move, Write)
    assert move.status.held == f"plan plan-2 (Approved) has claimed Deployment {DEPLOYMENT}"


def test_a_refused_plan_gives_its_claim_back_first() -> None:
    it = case(world(SCENARIOS[0]))
    ours = replace(it, look=it.with_deployment(claim=Claim(it.stored.key)))
    move = answer(strategy(ours, random.Random(1)))
    assert isinstance(move, Perform)
    assert type(move.effect).__name__ == "DropClaim"


def test_ranges_of_queues_are_read_as_plans_spell_them() -> None:
    cluster = FakeCluster(3)
    made = stored(cluster, (UpdateTemplate(CHANGE, 3, 1, 0, 1, LIMIT_S, MOVES),))
    before = replace(made.plan.forecast.owners_before[0], queues=("orders/broker-a/0,1-2",))
    forecast = replace(made.plan.forecast, owners_before=(before, *made.plan.forecast.owners_before[1:]))
    cluster.put(replace(made, plan=replace(made.plan, forecast=forecast)))
    assert isinstance(answer(case(cluster)), Perform)


def test_every_code_and_phase_is_told_in_the_docs() -> None:
    told = (Path(__file__).parents[3] / "docs" / "execution.md").read_text(encoding="utf-8")
    assert [name for name in (*Code, *Phase) if f"`{name}`" not in told] == []


@pytest.mark.parametrize("before", [5, 10**15])
def test_a_stop_of_a_stateful_set_takes_its_highest_numbers_and_a_count_of_any_size_takes_no_memory(
    before: int,
) -> None:
    """An author writes the counts: names for all of them would fill the executor's memory before its policy refuses."""
    it = case(world(next(scenario for scenario in SCENARIOS if scenario[0] == "down")))
    stopping = (Victim("other", ("member",)),)
    stop = StopConsumers(before, before - 1, (), LIMIT_S, MOVES, undo="back", stopping=stopping)
    plan = replace(it.stored.plan, steps=(stop,), target_kind="StatefulSet", target_replicas=before - 1)
    names = [f"{DEPLOYMENT}-{number}" for number in range(5)]
    pods = tuple(replace(pod, name=name) for pod, name in zip(it.facts.pods or (), names, strict=True))
    move = decide(replace(it.stored, plan=plan), it.with_facts(ordinals=Ordinals(), pods=pods), it.now)
    assert isinstance(move, Write)
    highest = f"the stop takes {DEPLOYMENT}-{before - 1}, the plan expects other: plan again"
    assert highest in [refusal.sentence for refusal in move.status.refusals]
