"""How long the Spark apps that read days of the lag history take, for groups of 16 queues with a load by the day.

    python -m benchmarks.history_apps backtest|demand [APP ARGUMENT...]

``CONSUMER_PLANNER_BENCH_GROUPS=20`` and ``CONSUMER_PLANNER_BENCH_DAYS=2`` say how much of it there is. The history is
written as the history app lays it out, one interval a minute and queue.
"""

import os
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql.pandas.types import to_arrow_schema

from benchmarks.simulate_spark import cost
from planner.storage.layout import history_folder, time_name
from spark_apps.common.history_folder import HISTORY_VERSION, VERSION, VERSION_FILE, HistoryVersion
from spark_apps.history.schemas import HISTORY

QUEUES, CAPACITY, MEMBERS, MINUTES_A_DAY = 16, 100.0, 8, 1440
FIRST_DAY = datetime(2026, 11, 1, tzinfo=UTC)
SCHEMA = to_arrow_schema(HISTORY, timezone="UTC")
POLICY = """\
apiVersion: consumerplanner.dev/v1alpha1
kind: ConsumerScalingPolicy
metadata: {{name: {group}}}
spec:
  source: {{system: rocketmq, nameServers: ["127.0.0.1:9876"], cluster: bench, group: {group}}}
  scaleTargetRef: {{name: {group}}}
  minReplicas: 1
  maxReplicas: 16
  objective: {{maxUtilisation: 0.8, backlogGoneSeconds: 600}}
  window: {{seconds: 120}}
  capacity: {{messagesPerSecond: 100}}
  strategy: AVG
"""


def main() -> None:
    """Lay out the history, run the app, and print what it took."""
    if sys.argv[1:2] not in (["backtest"], ["demand"]):
        sys.exit("python -m benchmarks.history_apps: expected backtest or demand, then the app's own arguments")
    name, *more = sys.argv[1:]
    groups, days = (int(os.environ.get(f"CONSUMER_PLANNER_BENCH_{many}", usual)) for many, usual in DEFAULTS)
    with tempfile.TemporaryDirectory(prefix="planner-bench-") as temporary:
        folder = Path(temporary)
        lay_out(folder, groups, days)
        app = ["-m", f"spark_apps.{name}.app", "--data", str(folder), "--policies", str(folder / "policies")]
        load, started = os.getloadavg()[0], time.perf_counter()
        worker, spent = cost([sys.executable, *app, *more])
        seconds = time.perf_counter() - started
    print(
        f"{groups} groups, {days} days: {seconds:.0f} s, {spent:.0f} s of processor time, "
        f"largest worker {worker / 2**20:.0f} MiB; load before {load:.1f}"
    )


DEFAULTS = (("GROUPS", "20"), ("DAYS", "2"))


def lay_out(folder: Path, groups: int, days: int) -> None:
    """Write policies and a history of so many groups and days."""
    (folder / "policies").mkdir(parents=True)
    for number in range(groups):
        (folder / "policies" / f"group-{number}.yaml").write_text(POLICY.format(group=f"group-{number}"))
    history = history_folder(folder)
    for day in range(days):
        begin = FIRST_DAY + timedelta(days=day)
        target = history / "intervals" / f"day={begin:%Y-%m-%d}" / "system=rocketmq"
        target.mkdir(parents=True)
        table = pa.concat_tables([day_of_group(number, day) for number in range(groups)])
        pq.write_table(table, target / f"bench-{time_name(begin + timedelta(days=1))}-0.parquet")
    (history / VERSION_FILE).write_bytes(HISTORY_VERSION.dump(HistoryVersion(VERSION)))


def day_of_group(number: int, day: int) -> pa.Table:
    """Return the intervals of one group and day: 2 to 10 consumers' work by the hour, in bursts, ten messages wait."""
    chance = np.random.default_rng([number, day])
    minutes = np.arange(MINUTES_A_DAY)
    wave = 6 + 4 * np.sin(2 * np.pi * (minutes / MINUTES_A_DAY + number / 20))
    noise = chance.lognormal(-0.02, 0.2, (QUEUES, MINUTES_A_DAY))
    rates = (CAPACITY * wave / QUEUES * noise).ravel()
    ends = np.tile((minutes * 60 + day * 86_400) * 1_000_000, QUEUES) + round(FIRST_DAY.timestamp() * 1e6)
    rows, queue = len(rates), np.repeat(np.arange(QUEUES), MINUTES_A_DAY)
    owners = pa.array([[f"10.0.0.{member}@1"] for member in range(MEMBERS)]).take(pa.array(queue * MEMBERS // QUEUES))
    columns = {
        "cluster": pa.repeat("bench", rows),
        "group": pa.repeat(f"group-{number}", rows),
        "topic": pa.repeat("orders", rows),
        "broker": pa.repeat("broker-a", rows),
        "queue_id": pa.array(queue, pa.int32()),
        "started_at": times(ends - 60_000_000),
        "ended_at": times(ends),
        "seconds": pa.repeat(60.0, rows),
        "lag": pa.repeat(10, rows),
        "owners": owners,
        "arrival_rate": pa.array(rates),
        "consumption_rate": pa.array(rates),
        "source": pa.repeat("sample", rows),
    }
    fields = [field for field in SCHEMA if field.name not in ("system", "day")]
    return pa.table({it.name: columns.get(it.name, pa.nulls(rows, it.type)) for it in fields}).cast(pa.schema(fields))


def times(micros: NDArray[np.int64]) -> pa.Array:
    """Return microseconds since 1970 as times."""
    return pa.array(micros, pa.int64()).cast(pa.timestamp("us", tz="UTC"))


if __name__ == "__main__":
    main()
