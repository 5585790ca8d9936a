"""How long a forecast takes: the command for one request, the simulation alone as groups, members and trials grow."""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.path import ROOT, report, seconds
from planner.documents.forecast import forecast
from tests.unit.dynamics.small_groups import client_id, kafka_leave, kafka_request, leave, rocketmq_request

JOIN = {"kind": "join", "clients": [{"id": "10.0.1.1@new"}]}
EVERYBODY = [client_id(number + 1) for number in range(16)]
CHANGES: dict[str, dict[str, Any]] = {
    "join": JOIN,
    "join, id not known": {"kind": "join", "clients": [{"id": None}]},
    "graceful leave": leave("graceful", 4),
    "silent leave": leave("silent", 4),
    "broker up": {"kind": "broker_up", "broker": "broker-b"},
    "rolling restart of all": {"kind": "restart", "clients": EVERYBODY, "how": "graceful", "interval_s": 30},
    "strategy of all, in sequence": {"kind": "strategy", "to": "AVG_BY_CIRCLE", "clients": EVERYBODY, "interval_s": 30},
}
ROLLING = {"kind": "rolling_update", "max_surge": 1, "max_unavailable": 0, "start_s": 5, "ready_s": 15, "grace_s": 30}
BY_BROKER: dict[str, Any] = {"settings": {"clientRebalance": False}}
COSTLIEST: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rolling update": (ROLLING, {}),
    "rolling update, orderly": (ROLLING, {"orderly": True}),
    "rolling update, consistent hash": (ROLLING, {"strategy": "CONSISTENT_HASH"}),
    "rolling update, popping": (ROLLING, {"options": {"pop_share_queues": -1}}),
    "strategy of all, orderly": (CHANGES["strategy of all, in sequence"], {"orderly": True}),
    "rolling restart of all, by broker": (CHANGES["rolling restart of all"], BY_BROKER),
    "strategy of all, by broker": (CHANGES["strategy of all, in sequence"], BY_BROKER),
}
"""Changes of all members in turn, with what makes them dear: many looks, or many owners of a queue."""

KAFKA = [f"c{number}" for number in range(16)]
KAFKA_CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "eager join": ("range", {"kind": "join", "clients": [{"id": "c99"}]}),
    "eager join, id not known": ("range", {"kind": "join", "clients": [{"id": None}]}),
    "cooperative join": ("cooperative-sticky", {"kind": "join", "clients": [{"id": "c99"}]}),
    "crash, consumer protocol": ("uniform", kafka_leave("crash", "c4")),
    "rolling restart of all": (
        "cooperative-sticky",
        {"kind": "restart", "clients": KAFKA, "how": "graceful", "interval_s": 30},
    ),
    "rolling restart, consumer protocol": (
        "uniform",
        {"kind": "restart", "clients": KAFKA, "how": "graceful", "interval_s": 30},
    ),
    "upgrade": ("cooperative-sticky", {"kind": "upgrade", "clients": KAFKA, "to": "4.1.0", "interval_s": 30}),
    "rolling update": ("cooperative-sticky", ROLLING),
}


def main() -> None:
    """Print one line a figure: seconds for the command, milliseconds of processor time for the simulation."""
    report(
        "planner forecast, 64 queues, 16 members, 200 trials", command_s(rocketmq_request(JOIN, queues=64, clients=16))
    )
    for name, change in CHANGES.items():
        show(f"{name}: 64 queues, 16 members, 200 trials", rocketmq_request(change, queues=64, clients=16))
    for name, (change, more) in COSTLIEST.items():
        show(f"{name}: 64 queues, 16 members", rocketmq_request(change, queues=64, clients=16, **more))
    eager = kafka_request(KAFKA_CHANGES["eager join"][1], "range", partitions=64, members=16)
    report("planner forecast, Kafka, 64 partitions, 16 members, 200 trials", command_s(eager))
    for name, (strategy, kafka_change) in KAFKA_CHANGES.items():
        show(
            f"Kafka, {name}: 64 partitions, 16 members",
            kafka_request(kafka_change, strategy, partitions=64, members=16),
        )
    for queues, clients in ((16, 4), (64, 16), (256, 64), (1024, 256)):
        show(f"join: {queues} queues, {clients} members", rocketmq_request(JOIN, queues=queues, clients=clients))
    for trials in (20, 200, 2_000):
        show(
            f"join: 16 queues, 4 members, {trials} trials", rocketmq_request(JOIN, queues=16, clients=4, trials=trials)
        )


def command_s(request: dict[str, Any]) -> float:
    """Return how long one call of the command takes, its start included."""
    with tempfile.TemporaryDirectory(prefix="planner-bench-") as folder:
        file = Path(folder) / "request.json"
        file.write_text(json.dumps(request))
        command = [sys.executable, "-m", "planner.cli.main", "forecast", str(file), "-o", "json"]
        return min(seconds(command, ROOT, {}) for _ in range(3))


def show(name: str, request: dict[str, Any]) -> None:
    """Print the best of three runs."""
    took = min(processor_s(request) for _ in range(3))
    print(f"{name:58} {took * 1000:9.1f} ms {took * 1000 / request['trials']:8.3f} ms a trial", flush=True)


def processor_s(request: dict[str, Any]) -> float:
    """Return the processor time of one forecast."""
    started = time.process_time()
    forecast(request)
    return time.process_time() - started


if __name__ == "__main__":
    main()
