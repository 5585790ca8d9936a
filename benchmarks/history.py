"""How fast a day of packed samples becomes lag history, and what it takes: 10, 100 and 1 000 groups of 32 queues.

The samples are made from the traces of real workloads in the folder that CONSUMER_PLANNER_TRACES names, one every 30 s;
``CONSUMER_PLANNER_BENCH_GROUPS=10,100`` measures fewer groups. Needs about 6 GB of disk for 1 000 groups.
"""

import csv
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.path import ROOT

DAY = datetime(2026, 11, 21, tzinfo=UTC)
EVERY_S = 30
POINTS = 86_400 // EVERY_S
PACK = 20
"""Samples in one packed row: what a run every ten minutes packs."""
QUEUES = 32
CLIENTS = 4
GROUPS_A_FILE = 25
DIFFERENT_FILES = 4
"""After so many files the same samples come again under other names: making them takes longer than the job."""
CURVES = {"azure_queue_triggers_1min.csv": 60, "ms_ingress_4streams_1min.csv": 60, "nab_tweets_10keys_5min.csv": 300}
"""Traces by file, with the seconds of one step."""

JOB = """
import sys
from spark_apps.common.folder import Folder
from spark_apps.common.session import session
from spark_apps.history.app import prepare, rebuild
with session("bench") as spark:
    history = Folder.of(spark, sys.argv[1])
    prepare(history)
    rebuild(history, 30.0)
"""


def main() -> None:
    """Print one line for each number of groups."""
    groups = [int(text) for text in os.environ.get("CONSUMER_PLANNER_BENCH_GROUPS", "10,100,1000").split(",")]
    traces = os.environ.get("CONSUMER_PLANNER_TRACES")
    if traces is None:
        print("left out: CONSUMER_PLANNER_TRACES names no folder of traces")
        return
    curves = list(read_curves(Path(traces)))
    for count in groups:
        with tempfile.TemporaryDirectory(prefix="planner-bench-") as folder:
            measure(Path(folder), curves, count)


def measure(folder: Path, curves: list[np.ndarray], groups: int) -> None:
    """Make the samples of so many groups, run the job, and print what it took."""
    write_traces(folder, curves, groups)
    load = os.getloadavg()[0]
    started = time.perf_counter()
    peak, spent = cost([sys.executable, "-c", JOB, str(folder)])
    seconds = time.perf_counter() - started
    rows = groups * QUEUES * POINTS
    print(
        f"{groups:5} groups, {rows / 1e6:6.2f} million rows: {seconds:6.1f} s, {rows / seconds:9,.0f} rows/s, "
        f"{spent:.0f} s of two processors, peak {peak / 2**30:.2f} GiB, "
        f"traces {size(folder / 'traces'):,.0f} MB, history {size(folder / 'intervals'):,.0f} MB; "
        f"load before {load:.1f}",
        flush=True,
    )


def read_curves(folder: Path) -> Iterator[np.ndarray]:
    """Yield messages per second over a day, in steps of ``EVERY_S``, for each key of the traces; their mean is 1."""
    for name, step_s in CURVES.items():
        by_key: dict[str, list[float]] = {}
        with (folder / name).open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                by_key.setdefault(row["key"], []).append(float(row["value"]))
        for values in by_key.values():
            held = np.repeat(values, step_s // EVERY_S)
            day = np.resize(held, POINTS)
            if day.mean() > 0:
                yield day / day.mean()


def write_traces(history: Path, curves: list[np.ndarray], groups: int) -> None:
    """Write the packed samples of one day, where and how the history app packs them."""
    folder = history / "traces" / f"{DAY:day=%Y-%m-%d}" / "system=rocketmq"
    folder.mkdir(parents=True)
    (history / "_version.json").write_bytes(version())
    random = np.random.default_rng(1)
    made = [traces_of(random, curves, range(min(GROUPS_A_FILE, groups))) for _ in range(DIFFERENT_FILES)]
    for number in range(-(-groups // GROUPS_A_FILE)):
        table = renamed(made[number % DIFFERENT_FILES], number)
        pq.write_table(table, folder / f"sample-{number:05}.parquet", compression="zstd")


def renamed(table: pa.Table, number: int) -> pa.Table:
    """Return the same samples as those of other groups."""
    names = pc.binary_join_element_wise(table["group"], str(number), "-")
    return table.set_column(table.column_names.index("group"), "group", names)


def version() -> bytes:
    """Return the version file of an empty history."""
    from spark_apps.common.history_folder import HISTORY_VERSION, VERSION, HistoryVersion

    return HISTORY_VERSION.dump(HistoryVersion(VERSION))


def traces_of(random: np.random.Generator, curves: list[np.ndarray], groups: range) -> pa.Table:
    """Return the day of some groups: every queue follows a trace, its owner does a third more than its mean."""
    queues = len(groups) * QUEUES
    mean = 10 ** random.uniform(-0.5, 2.0, queues)
    chosen = random.integers(0, len(curves), queues)
    rates = np.stack([curves[number] for number in chosen]) * mean[:, None]
    arrived = random.poisson(rates * EVERY_S).cumsum(axis=1)
    done = np.empty_like(arrived)
    so_far = np.zeros(queues, dtype=np.int64)
    for point in range(POINTS):
        so_far = np.minimum(arrived[:, point], so_far + random.poisson(mean * EVERY_S * 4 / 3))
        done[:, point] = so_far
    return packed(groups, arrived + 1_000_000, done + 1_000_000, random.integers(0, CLIENTS, (queues, POINTS // PACK)))


def packed(groups: range, broker: np.ndarray, consumer: np.ndarray, owner: np.ndarray) -> pa.Table:
    """Return ``TRACES`` without ``system``; each owner keeps its queues for two hours."""
    packs = POINTS // PACK
    rows = len(broker) * packs
    at = int(DAY.timestamp() * 1e6) + np.arange(POINTS) * EVERY_S * 1_000_000
    ends = pa.array(np.arange(rows + 1) * PACK, pa.int32())

    def lists(values: np.ndarray, of_type: pa.DataType) -> pa.Array:
        return pa.ListArray.from_arrays(ends, pa.array(values.reshape(-1)).cast(of_type))

    def repeated(values: list[Any], times: int) -> pa.Array:
        return pa.array(values).take(
            pa.array(np.tile(np.repeat(np.arange(len(values)), times), rows // len(values) // times))
        )

    names = [f"group-{number:04}" for number in groups]
    steady = np.repeat(owner[:, :: packs // 12], packs // 12, axis=1).reshape(-1)
    owner_lists = pa.array([[[], [f"10.0.0.{number}@4711#1"]] for number in range(CLIENTS)])
    return pa.table(
        {
            "cluster": pa.repeat("DefaultCluster", rows),
            "group": repeated(names, QUEUES * packs),
            "topic": pa.repeat("orders", rows),
            "broker": repeated(["broker-a", "broker-b"], QUEUES // 2 * packs),
            "queue_id": repeated(list(range(QUEUES // 2)), packs).cast(pa.int32()),
            "at": lists(np.tile(at, len(broker)), pa.timestamp("us", tz="UTC")),
            "broker_offset": lists(broker, pa.int64()),
            "consumer_offset": lists(consumer, pa.int64()),
            "lag": lists(broker - consumer, pa.int64()),
            "owners": lists(np.ones(rows * PACK, dtype=np.int32), pa.int32()),
            "owner_lists": owner_lists.take(pa.array(steady)),
        }
    )


def cost(command: list[str]) -> tuple[int, float]:
    """Run a command to its end; return the most bytes that its whole family held at one time, and processor seconds."""
    highest = 0
    spent: dict[int, float] = {}
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        said: list[bytes] = []
        reader = threading.Thread(target=lambda: said.extend(running.stdout or ()))
        reader.start()
        while running.poll() is None:
            highest = max(highest, resident(running.pid, spent))
            time.sleep(0.5)
        reader.join()
    if running.returncode:
        sys.exit(b"".join(said[-40:]).decode())
    return highest, sum(spent.values())


def resident(pid: int, spent: dict[int, float]) -> int:
    """Return the resident bytes of a process and all its descendants; note what processor time each has used so far."""
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return 0
    total = 0
    for process in family:
        try:
            total += process.memory_info().rss
            spent[process.pid] = sum(process.cpu_times()[:2])
        except psutil.Error:  # it has just ended
            continue
    return total


def size(folder: Path) -> float:
    """Return the megabytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*.parquet")) / 1e6


if __name__ == "__main__":
    main()
