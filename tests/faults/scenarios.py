"""One thing that goes wrong while a plan is carried out, and the end that it must come to: one scenario each."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from planner.rollout.steps import Step
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.kubelet import Kubelet
from tests.clusters.kubernetes.rest import ApiError, Json
from tests.faults import injected
from tests.faults.injected import NODE, TAINT
from tests.faults.judge import judge
from tests.faults.kinds import DOWN, RELOCATED, RENEWED, UP, Kind
from tests.faults.observer import Observer, Record
from tests.faults.place import CLAIM, place
from tests.faults.running import PLAN, Run

SLEEPS = {"command": ["sleep", "infinity"]}
TOLERANT = {"tolerations": [{"key": TAINT, "operator": "Exists"}]}
FEWER, SCALED, MARKED = "were ready", "without a claim: app: replicas", ": deletion cost "


@dataclass(frozen=True)
class Outcome:
    """What a scenario came to."""

    phase: str
    ended: str
    message: str
    surprises: tuple[str, ...]
    deployment: Json
    record: Record
    faults: tuple[str, ...]
    said: str


@dataclass(frozen=True)
class Scenario:
    """``disturb`` starts the executors and injects the fault. ``phase`` and ``says`` are what the plan must end with.

    ``steps`` are other than the kind's. ``allows`` are words of what would be wrong without the fault: it makes
    consumers fewer itself, or changes a Deployment. ``container`` is the Deployment's. ``loses_node``: its pods run on
    two nodes. ``again`` are words of what has to be done twice, as somebody undoes it, and nothing else may;
    ``surprise`` those of what the plan must say to have met.
    """

    name: str
    kind: Kind
    disturb: Callable[[Run], None]
    phase: str
    says: str
    steps: Callable[[Sequence[str]], tuple[Step, ...]] | None = None
    allows: str | None = None
    container: Json | None = None
    loses_node: bool = False
    again: str | None = None
    surprise: str | None = None


def carry_out(cluster: ControlPlane, observer: Observer, folder: Path, scenario: Scenario) -> Outcome:
    """Return what became of the scenario's plan."""
    kind = scenario.kind
    second: AbstractContextManager[Mapping[str, Kubelet]] = (
        node(cluster, folder) if scenario.loses_node else nullcontext({})
    )
    with (
        second as nodes,
        place(cluster, folder, kind.replicas, scenario.container, TOLERANT if nodes else None) as where,
    ):
        kept = where.kept()
        path = where.write(PLAN, where.fitting((scenario.steps or kind.steps)(where.ready_pods())))
        run = Run(cluster, where, path, observer.follow(where.namespace, kind.replicas), nodes)
        try:
            scenario.disturb(run)
            for executor in run.executors:
                executor.wait()
        finally:
            for executor in run.executors:
                executor.kill()
        verdict = judge(where, kind, PLAN, run.record, kept)
        observer.leave(where.namespace)
        status = where.status(PLAN)
        return Outcome(
            phase=str(status.get("phase")),
            ended=str(status.get("ended")),
            message=str(status.get("message")),
            surprises=tuple(status.get("surprises") or ()),
            deployment=where.deployment() or {},
            record=run.record,
            faults=verdict.faults,
            said=" || ".join(one.said for one in run.executors),
        )


@contextmanager
def node(cluster: ControlPlane, folder: Path) -> Iterator[Mapping[str, Kubelet]]:
    """Give a second node, to which only pods go that tolerate that it will be gone."""
    made = Kubelet(cluster.rest, folder / NODE, name=NODE)
    made.start()
    taints = [{"key": TAINT, "effect": "NoSchedule"}]
    cluster.rest.patch(f"/api/v1/nodes/{NODE}", {"spec": {"taints": taints}})
    try:
        yield {NODE: made}
    finally:
        made.stop()
        with suppress(ApiError):
            cluster.rest.delete(f"/api/v1/nodes/{NODE}")


def check(scenario: Scenario, outcome: Outcome) -> None:
    """Raise ``AssertionError`` unless the plan came to the scenario's end, without harm."""
    told = f"{outcome.phase}: {outcome.message}"
    assert outcome.phase == scenario.phase, f"{told}; {outcome.said}"
    assert scenario.says in told, told
    twice = outcome.record.twice
    assert all(scenario.again and scenario.again in what for what in twice), twice
    assert bool(twice) == bool(scenario.again), f"nothing was done twice, not even what somebody undid; {outcome.said}"
    surprises = outcome.surprises
    assert scenario.surprise is None or any(scenario.surprise in met for met in surprises), surprises
    excused = [words for words in (scenario.allows, scenario.again) if words]
    wrong = [fault for fault in outcome.faults if not any(words in fault for words in excused)]
    if scenario.phase == "Stuck":  # which is neither old nor new, and keeps its claim
        assert outcome.ended == "between"
        assert not outcome.deployment or CLAIM in outcome.deployment["metadata"]["annotations"]
        wrong = [fault for fault in wrong if "were ready" in fault or "without a claim" in fault]
    assert not wrong, f"{wrong}; {outcome.said}"


SCENARIOS: tuple[Scenario, ...] = (
    Scenario("another writer all the time", UP, injected.stormed, "Succeeded", "the new state is there"),
    Scenario(
        "another writer sets a third count",
        UP,
        injected.scaled,
        "Stuck",
        "somebody set Deployment app to 7 replicas",
        allows=SCALED,
    ),
    Scenario(
        "another writer sets the old count",
        UP,
        injected.scaled_back,
        "RolledBack",
        "set Deployment app back to 2",
        allows=SCALED,
    ),
    Scenario(
        "the claim is taken away", UP, injected.unclaimed, "RolledBack", "took the claim away from Deployment app"
    ),
    Scenario("the Deployment is deleted", UP, injected.deleted, "Stuck", "Deployment app is gone", allows=FEWER),
    Scenario("429 for a while", UP, injected.busy, "Succeeded", "the new state is there"),
    Scenario(
        "429 of the API server's own",
        UP,
        injected.crowded_out,
        "Succeeded",
        "the new state is there",
        injected.asked_between,
    ),
    Scenario(
        "the token is renewed",
        UP,
        injected.token_renewed,
        "Succeeded",
        "the new state is there",
        injected.asked_between,
    ),
    Scenario("no answer for a while", RENEWED, injected.swallowed, "Succeeded", "the new state is there"),
    Scenario("lost answers", RELOCATED, injected.lost, "Succeeded", "the new state is there"),
    Scenario(
        "pods that never become ready",
        RENEWED,
        injected.undisturbed,
        "RolledBack",
        "awaitReady was not",
        injected.never_ready,
    ),
    Scenario(
        "crash loop",
        RENEWED,
        injected.undisturbed,
        "RolledBack",
        "awaitReady was not",
        injected.crash_looping,
        container=SLEEPS,
    ),
    Scenario("a pod is evicted", UP, injected.evicted, "Succeeded", "the new state is there", allows=FEWER),
    Scenario(
        "a victim is evicted",
        DOWN,
        injected.victim_evicted,
        "RolledBack",
        "is no longer in",
        injected.marked_then_asked,
        allows=FEWER,
    ),
    Scenario(
        "a mark is overwritten",
        DOWN,
        injected.mark_overwritten,
        "Succeeded",
        "the new state is there",
        injected.marked_then_asked,
        again=MARKED,
        surprise="deletion cost 7, after the plan had marked it to stop first: marked again",
    ),
    Scenario(
        "a mark is overwritten as often as it is set",
        DOWN,
        injected.marks_fought_over,
        "RolledBack",
        "and does so again",
        injected.marked_then_stopped_soon,
        again=MARKED,
        surprise="deletion cost 7, after the plan had marked it to stop first: marked again",
    ),
    Scenario(
        "members that never join",
        RELOCATED,
        injected.undisturbed,
        "RolledBack",
        "2 of 4 members",
        injected.never_joining,
    ),
    Scenario(
        "the old template is gone",
        RENEWED,
        injected.old_template_gone,
        "Stuck",
        "has no template",
        injected.renewed_then_asked,
    ),
    Scenario(
        "the lease is lost before an effect",
        UP,
        injected.frozen_before_its_effect,
        "Succeeded",
        "the new state is there",
    ),
    Scenario(
        "killed when the plan is over", RENEWED, injected.killed_at_its_end, "Succeeded", "the new state is there"
    ),
    Scenario("the clock of its host jumps", UP, injected.clock_jumps, "Succeeded", "the new state is there"),
    Scenario(
        "the lease is lost and the plan undone", UP, injected.frozen_and_aborted, "RolledBack", "aborted by a person"
    ),
)
"""Those that leave the cluster alone: any number of them can run at once."""


def api_server_away(seconds: float) -> Scenario:
    """Return the scenario of an API server that is killed and comes again so much later: it must run alone."""

    def away(run: Run) -> None:
        run.start()
        run.await_step("awaitReady")
        run.cluster.api_server.kill()
        time.sleep(seconds)
        run.cluster.start_api_server()

    return Scenario("the API server is away", UP, away, "Succeeded", "the new state is there")


LONG: tuple[Scenario, ...] = (
    Scenario(
        "the token is over", UP, injected.token_over, "Succeeded", "the new state is there", injected.asked_between
    ),
    Scenario("a storm without end", UP, injected.storm_without_end, "Stuck", "409", injected.asked_first),
    Scenario(
        "a node is gone",
        UP,
        injected.node_gone,
        "Succeeded",
        "the new state is there",
        injected.asked_between,
        allows=FEWER,
        loses_node=True,
    ),
)
"""Those that take minutes, for ``make faults`` alone."""
