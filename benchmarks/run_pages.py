"""What plans and pages of 1 000 groups cost a run, against the same work one after the other in one process.

Groups are those of ``simulate_spark``. Pages one after the other are measured for the first hundred, and scaled.
``CONSUMER_PLANNER_BENCH_GROUPS=100`` measures fewer groups.
"""

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import simulate_spark
from benchmarks.simulate_spark import captured, policy_text, usual
from planner import pipeline
from planner.allocation.group import allocate_group
from planner.allocation.registry import find_strategy
from planner.documents.policy import ConsumerScalingPolicy, read_policy
from planner.model.snapshot import GroupSnapshot
from planner.runs.pages import Pages, write_pages, write_policy_page
from planner.runs.plan import plan_policy
from planner.runs.policy_stages import write_decision, write_snapshot
from planner.storage.run import Run

ONE_BY_ONE = 100
"""Pages that are written one after the other; the rest would take as long each."""

PLANNED = 10
"""One group of so many is decided on as it is; the others' policies keep the count that the group has."""


@dataclass(frozen=True)
class Cost:
    """Seconds of the clock and of processors, children included."""

    clock_s: float
    processor_s: float


def main() -> None:
    """Print what each way took, with the ratio to one by one."""
    groups = int(os.environ.get("CONSUMER_PLANNER_BENCH_GROUPS", "1000").split(",")[-1])
    with tempfile.TemporaryDirectory(prefix="planner-bench-") as folder:
        run, policies = laid_out(Path(folder), captured(), groups)
        loop = show("plans, one by one", cost(lambda: plan_each(run, policies)))
        app = ["-m", "spark_apps.plan.app", "--data", str(run.data), "--policies", str(run.policies)]
        command = [sys.executable, *app, "--at", run.until.isoformat()]
        show("plans, Spark app with its start", cost_of_app(command), loop)
        plans = len(list(run.folder.path.glob("*/plan.yaml")))
        few = policies[:ONE_BY_ONE]
        some = cost(lambda: write_each(run, few))
        share = groups / len(few)
        loop = show(f"{groups} pages, one by one", Cost(some.clock_s * share, some.processor_s * share))
        show(f"pages=plans ({plans} pages)", cost(lambda: asked(run, "plans")), loop)
        show(f"pages=all ({groups} pages)", cost(lambda: asked(run, "all")), loop)


def laid_out(folder: Path, base: GroupSnapshot, groups: int) -> tuple[Run, Sequence[ConsumerScalingPolicy]]:
    """Return a run of so many decided groups, and their policies."""
    run = Run(folder, folder / "policies", base.at, base.at, 5.0)
    run.policies.mkdir()
    policies = []
    for number in range(groups):
        snapshot = settled(usual(base, number))
        path = run.policies / f"{snapshot.group}.yaml"
        text, size = policy_text(snapshot.group), len(snapshot.clients)
        text = text.replace("shop-orders-consumer", f"{snapshot.group}-consumer")  # each in pods of its own
        if number % PLANNED:
            text = text.replace("maxReplicas: 32", f"maxReplicas: {size}").replace(
                "minReplicas: 1", f"minReplicas: {size}"
            )
        path.write_text(text)
        policy = read_policy(path)
        write_snapshot(run.folder, policy.metadata.name, snapshot)
        write_decision(run.folder, policy, snapshot, pipeline.simulate(snapshot, policy))
        policies.append(policy)
    return run, policies


def settled(snapshot: GroupSnapshot) -> GroupSnapshot:
    """Return the group with every queue at the member that its strategy gives it to."""
    given = allocate_group(
        find_strategy(snapshot.strategy or ""), [state.queue for state in snapshot.queues], snapshot.clients
    )
    owners = {queue: client for client, queues in given.answer().items() for queue in queues}
    return replace(snapshot, queues=tuple(replace(state, owner=owners[state.queue]) for state in snapshot.queues))


def plan_each(run: Run, policies: Sequence[ConsumerScalingPolicy]) -> None:
    """Write all plans, one after the other."""
    for policy in policies:
        plan_policy(run, policy)


def write_each(run: Run, policies: Sequence[ConsumerScalingPolicy]) -> None:
    """Write a page for each policy, one after the other."""
    for policy in policies:
        if not isinstance(found := write_policy_page(run, policy), Path):
            raise found


def asked(run: Run, pages: Pages) -> None:
    """Write the pages of a run as its task does."""
    if reasons := write_pages(run, pages):
        sys.exit(f"pages are missing: {reasons}")


def cost_of_app(command: Sequence[str]) -> Cost:
    """Return what a Spark app took: its workers are looked at, as nobody waits for their end."""
    begun = time.perf_counter()
    _, spent = simulate_spark.cost(command)
    return Cost(time.perf_counter() - begun, spent)


def cost(work: Callable[[], None]) -> Cost:
    """Return what the work took."""
    begun, spent = time.perf_counter(), spent_s()
    work()
    return Cost(time.perf_counter() - begun, spent_s() - spent)


def spent_s() -> float:
    """Return the processor time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def show(name: str, took: Cost, loop: Cost | None = None) -> Cost:
    """Print one line, with the ratio to one by one; return what it took."""
    ratio = "" if loop is None else f", {loop.clock_s / took.clock_s:5.1f} times as fast"
    load = os.getloadavg()[0]
    print(
        f"{name:34} {took.clock_s:7.1f} s, {took.processor_s:7.1f} s of processor time{ratio}; load {load:.0f}",
        flush=True,
    )
    return took


if __name__ == "__main__":
    main()
