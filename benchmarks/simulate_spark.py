"""How long the Spark app ``simulate`` takes for 1 000 groups, all useful counts, 200 trials each, and how that grows.

Groups are made from the bundled capture: 8 to 32 queues, 2 to 8 members, its rates and settings scaled at random.
``CONSUMER_PLANNER_BENCH_GROUPS=10,100`` measures fewer groups. Growth is measured in one process without Spark.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil

from benchmarks.path import CAPTURE, POLICY, ROOT
from planner import pipeline
from planner.documents.data import SNAPSHOT
from planner.documents.policy import read_policy
from planner.model.queues import MessageQueue
from planner.model.snapshot import GroupSnapshot
from planner.simulation.candidates import candidate_counts, simulate_candidate
from planner.simulation.transition import TRIALS, with_transition
from planner.sources.capture import open_capture
from planner.storage.layout import RunFolder

MOST_REPLICAS = 32
GROUPS_MEASURED = 10
"""Groups of one size whose mean is a figure of growth."""


def main() -> None:
    """Print the app's figures by number of groups, then what one group costs by queues, members and trials."""
    base = captured()
    for groups in (int(text) for text in os.environ.get("CONSUMER_PLANNER_BENCH_GROUPS", "10,100,1000").split(",")):
        with tempfile.TemporaryDirectory(prefix="planner-bench-") as folder:
            measure(Path(folder), base, groups)
    for queues in (8, 16, 32, 64, 128):
        show(f"{queues} queues, 4 members, {TRIALS} trials", base, queues, 4)
    for members in (2, 4, 8, 16):
        show(f"32 queues, {members} members, {TRIALS} trials", base, 32, members)
    for trials in (20, 200, 2_000):
        show(f"16 queues, 4 members, {trials} trials", base, 16, 4, trials)


def captured() -> GroupSnapshot:
    """Return the capture's last snapshot."""
    capture = open_capture(CAPTURE)
    policy = read_policy(POLICY)
    samples = tuple(capture.samples(policy.spec.source.group))
    return pipeline.take_snapshot(samples, capture.header.sample_every_s, policy, samples[-1].at)


def group(base: GroupSnapshot, number: int, queues: int, members: int) -> GroupSnapshot:
    """Return a settled group of that size with the capture's rates, lags and settings in new places."""
    chance = np.random.default_rng(number)
    taken = chance.choice(len(base.data_queues), queues)
    scale = float(chance.lognormal(0.0, 0.5))
    states = []
    for place, pick in enumerate(taken.tolist()):
        queue = MessageQueue("orders", f"broker-{'ab'[place % 2]}", place // 2)
        state = base.data_queues[pick]
        mean, upper = ((rate or 0.0) * scale for rate in (state.arrival_rate, state.upper_arrival_rate))
        states.append(replace(state, queue=queue, arrival_rate=mean, upper_arrival_rate=upper, owner=None))
    clients = tuple(sorted(f"10.{number % 250}.{member}.7@{100 + member}#1" for member in range(members)))
    setups = tuple(replace(base.setups[0], client=client) for client in clients)
    return replace(
        base,
        group=f"group-{number}",
        queues=tuple(sorted(states, key=lambda state: state.queue)),
        clients=clients,
        setups=setups,
    )


def usual(base: GroupSnapshot, number: int) -> GroupSnapshot:
    """Return a group of a usual size: 8 to 32 queues, 2 to 8 members."""
    chance = np.random.default_rng([number, 1])
    return group(base, number, 2 * int(chance.integers(4, 17)), int(chance.integers(2, 9)))


def measure(folder: Path, base: GroupSnapshot, groups: int) -> None:
    """Lay out so many groups, run the app, and print what it took."""
    run = RunFolder.of(folder, base.at)
    run.snapshots.mkdir(parents=True)
    (folder / "policies").mkdir()
    candidates = 0
    for number in range(groups):
        made = usual(base, number)
        run.snapshot(made.group).write_bytes(SNAPSHOT.dump(made))
        (folder / "policies" / f"{made.group}.yaml").write_text(policy_text(made.group))
        candidates += len(candidate_counts(made, 1, MOST_REPLICAS)) * 2
    app = ["-m", "spark_apps.simulate.app", "--data", str(folder), "--policies", str(folder / "policies")]
    load, started = os.getloadavg()[0], time.perf_counter()
    worker, spent = cost([sys.executable, *app, "--at", base.at.isoformat()])
    seconds = time.perf_counter() - started
    print(
        f"{groups:5} groups, {candidates:6} outcomes: {seconds:6.1f} s, {spent:6.0f} s of processor time, "
        f"largest worker {worker / 2**20:.0f} MiB; load before {load:.1f}",
        flush=True,
    )


def policy_text(name: str) -> str:
    """Return the capture's policy for another group."""
    text = re.sub(r"(?m)^( *)(name|group): shop-orders$", rf"\1\2: {name}", POLICY.read_text())
    return re.sub(r"maxReplicas: \d+", f"maxReplicas: {MOST_REPLICAS}", text).replace(
        "minReplicas: 2", "minReplicas: 1"
    )


def cost(command: Sequence[str]) -> tuple[int, float]:
    """Run a command to its end; return the resident bytes of its largest Python worker and all processor seconds."""
    largest, spent = 0, dict[int, float]()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        said: list[bytes] = []
        reader = threading.Thread(target=lambda: said.extend(running.stdout or ()))
        reader.start()
        while running.poll() is None:
            largest = max(largest, look(running.pid, spent))
            time.sleep(0.25)
        reader.join()
    if running.returncode:
        sys.exit(b"".join(said[-40:]).decode())
    return largest, sum(spent.values())


def look(pid: int, spent: dict[int, float]) -> int:
    """Return the resident bytes of the largest worker below the process; note the processor time of its family."""
    largest = 0
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return 0
    for process in family:
        try:
            spent[process.pid] = sum(process.cpu_times()[:2])
            if process.pid != pid and "python" in process.name():
                largest = max(largest, process.memory_info().rss)
        except psutil.Error:  # it has just ended
            continue
    return largest


def show(name: str, base: GroupSnapshot, queues: int, members: int, trials: int = TRIALS) -> None:
    """Print the mean processor time of all useful counts of a group under its own strategy."""
    groups = [group(base, number, queues, members) for number in range(GROUPS_MEASURED)]
    counts = [candidate_counts(made, 1, MOST_REPLICAS) for made in groups]

    def simulate() -> None:
        for made, wanted in zip(groups, counts, strict=True):
            for count in wanted:
                with_transition(simulate_candidate(made, count, made.strategy or ""), made, made.group, trials)

    took = min(processor_s(simulate) for _ in range(3)) / sum(map(len, counts))
    print(f"{name:40} {took * 1000:8.1f} ms an outcome, {len(counts[0])} counts", flush=True)


def processor_s(task: Callable[[], None]) -> float:
    """Return the processor time of one call."""
    started = time.process_time()
    task()
    return time.process_time() - started


if __name__ == "__main__":
    main()
