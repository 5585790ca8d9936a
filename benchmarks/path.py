"""How long a new user waits: setup and run, cold and warm, on a fresh clone; DAG parsing; planning one group."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
CAPTURE = ROOT / "examples/captures/two-brokers-day"
POLICY = ROOT / "examples/policies/shop-orders.yaml"

PARSE = """
import time
started = time.perf_counter()
import dags.consumer_planner
print(time.perf_counter() - started)
"""


def main() -> None:
    """Print one line a figure, in seconds."""
    with tempfile.TemporaryDirectory(prefix="planner-bench-") as folder:
        clone_figures(Path(folder))
    report("DAG parse, Airflow imported already", dag_parse_s())
    plan_figures()
    report("planner allocate, 4 000 random requests", allocate_s(4000))


def allocate_s(count: int) -> float:
    """Return how long one call of the command takes for so many requests, its start included."""
    from tests.oracles import topologies

    with tempfile.TemporaryDirectory(prefix="planner-bench-") as folder:
        requests = Path(folder) / "requests.json"
        requests.write_text(json.dumps([topologies.request(number) for number in range(count)]))
        return seconds([sys.executable, "-m", "planner.cli.main", "allocate", str(requests), "-o", "json"], ROOT, {})


def clone_figures(folder: Path) -> None:
    """Print what a fresh clone with empty package caches costs; Java and Maven's own caches stay as they are."""
    clone = folder / "a fresh clone"
    run(["git", "clone", "--quiet", str(ROOT), str(clone)])
    empty = {"UV_CACHE_DIR": str(folder / "uv"), "PIP_NO_CACHE_DIR": "1", "XDG_CACHE_HOME": str(folder / "cache")}
    report("make setup, cold", seconds(["make", "setup"], clone, empty))
    report("make setup, warm", seconds(["make", "setup"], clone, empty))
    report("make run, first", seconds(["make", "run"], clone, empty))
    report("make run, again", seconds(["make", "run"], clone, empty))


def dag_parse_s() -> float:
    """Return the median time that importing the DAG file takes, with Airflow's own import left out."""
    code = "import airflow.sdk\n" + PARSE
    environment = {**os.environ, "AIRFLOW_HOME": str(ROOT / "work/airflow"), "PYTHONPATH": str(ROOT)}
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
              .stdout.split()[-1])
        for _ in range(3)
    ]  # fmt: skip
    return statistics.median(times)


def plan_figures() -> None:
    """Print what planning one group from its snapshot costs, as a command and as a function."""
    from planner import pipeline
    from planner.documents.data import SNAPSHOT
    from planner.documents.policy import read_policy

    with tempfile.TemporaryDirectory(prefix="planner-bench-") as folder:
        snapshot = Path(folder) / "snap.json"
        planner = [sys.executable, "-m", "planner.cli.main"]
        taken = ["snapshot", "-p", str(POLICY), "--capture", str(CAPTURE), "-o", str(snapshot)]
        report("planner snapshot of the capture", seconds([*planner, *taken], ROOT, {}))
        planned = [
            "plan",
            str(snapshot),
            "-p",
            str(POLICY),
            "-o",
            str(snapshot.with_suffix(".yaml")),
            "--at",
            "snapshot",
        ]
        report("planner plan from that snapshot", seconds([*planner, *planned], ROOT, {}))
        policy, read = read_policy(POLICY), SNAPSHOT.read(snapshot)
        started = time.perf_counter()
        for _ in range(20):
            outcomes = pipeline.simulate(read, policy)
            pipeline.plan(read, pipeline.decide(read, outcomes, policy), policy, outcomes)
        report("simulate, decide and plan, in one process", (time.perf_counter() - started) / 20)


def seconds(command: list[str], folder: Path, environment: Mapping[str, str]) -> float:
    """Return how long the command ran; its output is shown only when it fails."""
    started = time.perf_counter()
    run(command, folder, environment)
    return time.perf_counter() - started


def run(command: list[str], folder: Path = ROOT, environment: Mapping[str, str] | None = None) -> None:
    """Run a command to its end; leave with its output when it fails."""
    found = subprocess.run(
        command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if found.returncode:
        sys.exit(f"{' '.join(command)} ended with {found.returncode}\n{found.stdout[-3000:]}\n{found.stderr[-3000:]}")


def report(what: str, value: float) -> None:
    """Print one figure."""
    print(f"{what:45} {value:8.3f} s", flush=True)


if __name__ == "__main__":
    main()
