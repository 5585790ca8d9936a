"""The live tree: steps by how far they are, pods by what they do, members below their pods."""

from rich.console import Console

from planner.cli.tree import plan_tree
from planner.execution.reconcile import run_reconcile
from tests.unit.execution.worlds import SCENARIOS, ports, world


def shown(turns: int, *, has_looked: bool = True) -> str:
    """Return what people see after so many turns of 3 to 5."""
    cluster = world(SCENARIOS[0])
    for _ in range(turns):
        run_reconcile(ports(cluster), "plan-1", "one")
        cluster.advance(0.2)
    stored = cluster.plans["plan-1"]
    console = Console(width=200, no_color=True)
    with console.capture() as capture:
        console.print(plan_tree(stored, cluster.observe(stored, cluster.now) if has_looked else None))
    return capture.get()


def test_nothing_is_done_at_first() -> None:
    told = shown(0)
    assert "plan-1  Pending: waits for approval" in told
    assert "○ 1. start 1 pod, 3 to 4 replicas" in told
    assert "✔" not in told
    assert told.count("ready\n") + told.count("ready ") >= 3


def test_steps_that_are_done_and_under_way_are_told_apart_and_members_stand_below_their_pods() -> None:
    told = shown(8)
    assert "✔ 1. 4 replicas asked for" in told
    assert "● 2. wait until" in told
    assert "○ 3. wait until" in told
    assert "Deployment billing-consumer: 3 of 4 ready" in told
    assert "running, not ready" in told.lower() or "pending, not ready" in told
    assert "member 10.0.0.1@billing-consumer-1-0001" in told


def test_without_a_look_there_are_the_steps_alone() -> None:
    told = shown(8, has_looked=False)
    assert "● 2." in told
    assert "Deployment billing-consumer: " not in told
