"""What is checked of each change of a ``Loop``: who stays, who goes, what was seen, and what is kept of it."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from planner.documents.approve import approval_of
from planner.documents.data import SNAPSHOT
from planner.documents.plan import PLAN, read_document
from planner.documents.policy import read_policy
from planner.rollout.migrations.migration import plan_of, read_context
from planner.rollout.migrations.update import update
from planner.rollout.steps import AwaitLag, MarkVictims, StopConsumers
from planner.rollout.template import ContainerChange, Setting, TemplateChange
from planner.storage.track_records import read_records
from tests.clusters.deliveries import read_given
from tests.loops import WAIT_S, WATCH_S, Changed, Limits, Loop
from tests.unit.cli.test_cli import planner, refused

LAG_S = 20


def check_grown(loop: Loop, limits: Limits, count: int) -> None:
    """Have the planner ask for more consumers, and check what became of it."""
    policy, before = loop.write_policy(limits), loop.pods()
    done = loop.apply(loop.plan(policy), policy)
    assert set(before) < set(loop.pods()), "who was there stays"
    check_done(loop, done, limits, count)


def check_refreshed(loop: Loop, limits: Limits, count: int) -> None:
    """Have a plan for more consumers made anew, carry out the new one, and check that it is refused from then on.

    A migration is made anew by what it keeps of its request.
    """
    policy, before = loop.write_policy(limits), loop.pods()
    old, fresh = loop.plan(policy), loop.folder / "fresh.yaml"
    options = ("--policy", policy, "--kubeconfig", loop.cluster.kubeconfig, "--observe-seconds", WATCH_S)
    found = planner("refresh", old, *options, "-o", fresh)
    assert found.returncode == 0, (found.stdout, found.stderr)
    first, second = (PLAN.parse(read_document(path), str(path)) for path in (old, fresh))
    assert (first.target_replicas, second.target_replicas) == (count, count)
    assert first.snapshot.at < second.snapshot.at
    assert f"Digest {PLAN.digest(first)} -> {PLAN.digest(second)}" in found.stdout
    assert approval_of(read_document(fresh)) is None, "what was approved before is another plan"
    done = loop.apply(loop.approve(fresh), policy)
    assert set(before) < set(loop.pods()), "who was there stays"
    check_done(loop, done, limits, count)
    refused(planner("refresh", fresh, *options), 1, "has ended as Succeeded")
    found = planner("refresh", loop.migrate(policy, "update", "--env", "RELEASE=3"), *options, "--format", "json")
    assert found.returncode == 0, (found.stdout, found.stderr)
    summary = json.loads(found.stdout)
    assert (summary["kind"], summary["hold"]) == ("RefreshSummary", False)
    assert not {"count", "members", "strategy"} & {change["what"] for change in summary["changes"]}, summary


def check_shrunk(loop: Loop, limits: Limits, count: int) -> None:
    """Have the planner let consumers go, and check that they are the chosen ones."""
    policy, before = loop.write_policy(limits), loop.pods()
    done = loop.apply(loop.plan(policy), policy)
    victims = {pod for step in done.plan.steps if isinstance(step, MarkVictims) for pod in step.pods}
    stops = [step for step in done.plan.steps if isinstance(step, StopConsumers)]
    victims |= {victim.pod for step in stops for victim in step.stopping or ()}
    assert len(victims) == len(before) - count
    assert set(loop.pods()) == set(before) - victims
    check_done(loop, done, limits, count)


def check_updated(loop: Loop, limits: Limits) -> None:
    """Have all pods replaced by ones with another variable, more first; then no message may be older than a while."""
    policy, before = loop.write_policy(limits), loop.pods()
    taken, wanted = SNAPSHOT.read(loop.snapshot(policy)), read_policy(policy)
    found = read_context(taken, SNAPSHOT.digest(taken), wanted.rollout_settings)
    revision = int(loop.deployment()["metadata"]["annotations"]["deployment.kubernetes.io/revision"])
    change = TemplateChange((ContainerChange("main", env=(Setting("RELEASE", "2"),)),))
    made = plan_of(update(found, change, revision, surge=1), found, datetime.now(UTC))
    made = replace(made, steps=(*made.steps[:-1], AwaitLag(300, seconds=LAG_S), made.steps[-1]))
    path = loop.folder / "update.yaml"
    path.write_text(PLAN.text(PLAN.document(made, "update", loop.namespace)), encoding="utf-8")
    done = loop.apply(loop.approve(path), policy)
    assert not set(before) & set(loop.pods())
    assert [step["kind"] for step in done.status["steps"]][-2:] == ["awaitLag", "checkForecast"]
    check_done(loop, done, limits, len(before))
    (container,) = loop.deployment()["spec"]["template"]["spec"]["containers"]
    assert {"name": "RELEASE", "value": "2"} in container["env"]


def check_taken_over(loop: Loop, limits: Limits, count: int) -> None:
    """Kill who carries a plan out while consumers start; who goes on must say what it did not see."""
    policy = loop.write_policy(limits)
    path, begun = loop.plan(policy), read_given(loop.logs)
    applying = loop.start_apply(path, policy)
    try:
        loop.cluster.wait_until("the new pods", lambda: len(loop.pods()) == count, WAIT_S)
    finally:
        applying.kill()
        applying.communicate()
    done = loop.finish(path, policy, begun)
    check_done(loop, done, limits, count, unseen=("duplicates", "settled after"))


def check_turned_back(loop: Loop, limits: Limits) -> None:
    """Abort a plan for more consumers while they start, and check that the old ones own what they owned."""
    policy, before = loop.write_policy(limits), loop.pods()
    path = loop.plan(policy)
    name, had = str(read_document(path)["metadata"]["name"]), loop.owners()
    applying = loop.start_apply(path, policy)
    try:
        loop.cluster.wait_until("the new pods", lambda: len(loop.pods()) > len(before), WAIT_S)
        place = ("--namespace", loop.namespace, "--policy", policy, "--kubeconfig", loop.cluster.kubeconfig)
        aborted = planner("abort", name, *place)
        assert aborted.returncode == 0, aborted.stderr
        assert applying.wait(WAIT_S) == 1
    finally:
        applying.kill()
        applying.communicate()
    status = loop.status(name)
    assert (status["phase"], status["ended"]) == ("RolledBack", "old"), status
    assert loop.deployment()["spec"]["replicas"] == len(before)
    loop.cluster.wait_until("the old pods alone", lambda: loop.pods() == before, WAIT_S)
    loop.cluster.wait_until("the old owners", lambda: loop.owners() == had, WAIT_S)


def check_done(loop: Loop, done: Changed, limits: Limits, count: int, unseen: Sequence[str] = ()) -> None:
    """Check what every change must have: its end, truth within what was seen, and its record."""
    assert (done.status["phase"], done.status["ended"]) == ("Succeeded", "new"), done.status
    assert loop.deployment()["spec"]["replicas"] == len(loop.pods()) == count
    done.check_seen(unseen)
    queues = Counter(owner for _, owner in done.owners.values())
    busiest = loop.rate * max(queues.values()) / len(done.owners) / limits.capacity
    seen = done.figure("busiest consumer")
    assert seen["seenLow"] <= busiest <= seen["seenHigh"], (busiest, seen)
    records = read_records(loop.folder, done.plan.group)
    assert [miss.fit for miss in records[-1].misses] == [one["fit"] for one in done.status["verdict"]["figures"]]
    loop.changes.append(done)


def check_duplicates_forecast(loop: Loop) -> None:
    """Check that not every change missed its forecast of duplicates: an interval that holds nine times of ten.

    Three misses of three come once in a thousand.
    """
    seen = [(one.figure("duplicates"), one.course.twice()) for one in loop.changes]
    forecast = [(figure["low"], twice, figure["high"]) for figure, twice in seen if figure["high"] is not None]
    assert any(low <= twice <= high for low, twice, high in forecast), forecast
