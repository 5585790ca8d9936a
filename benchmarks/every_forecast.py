"""Forecasts of every kind of change for every kind of group, at 64 queues, 16 members and 200 trials, one run each.

Says which take a second or more, which are refused by name, and how long ``planner forecast`` takes with the longest,
start of Python and imports included. ``requests()`` serves to compare answers, too.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.forecast import ROLLING
from planner.documents.forecast import forecast
from planner.errors import BadInputError
from tests.unit.dynamics.small_groups import client_id, kafka_request, rocketmq_request

Document = dict[str, Any]

LIMIT_S, SHOWN = 1.0, 12
RUNS, PLANNER = 2, str(Path(sys.executable).with_name("planner"))
QUEUES, MEMBERS = 64, 16
NEW = [f"10.0.1.{number}@n{number}" for number in range(MEMBERS)]
OLD_4_9: Document = {"versions": {"client": "4.9.8", "broker": "5.5.0"}}
ROCKETMQ: Mapping[str, Document] = {
    "push": {},
    "push, backlog": {"lag": 5_000},
    "push, notifications off": {"settings": {"notifyConsumerIdsChangedEnable": False}},
    "orderly": {"orderly": True},
    "4.9": OLD_4_9,
    "4.9, by circle": {**OLD_4_9, "strategy": "AVG_BY_CIRCLE"},
    "5.1, hashed": {"versions": {"client": "5.1.4", "broker": "5.5.0"}, "strategy": "CONSISTENT_HASH"},
    "by circle": {"strategy": "AVG_BY_CIRCLE"},
    "hashed": {"strategy": "CONSISTENT_HASH"},
    "by broker": {"settings": {"clientRebalance": False}},
    "popping, two shares": {"options": {"pop_share_queues": 1}},
    "popping, everything": {"options": {"pop_share_queues": -1}},
    "lite pull": {"options": {"consumer": "lite_pull"}, "threads": 1},
    "pull": {"options": {"consumer": "pull"}, "threads": 1},
    "broadcasting": {"settings": {"messageModel": "BROADCASTING"}},
}
KAFKA: Mapping[str, tuple[str, Document]] = {
    "range": ("range", {}),
    "roundrobin": ("roundrobin", {}),
    "sticky": ("sticky", {}),
    "cooperative": ("cooperative-sticky", {}),
    "cooperative, backlog": ("cooperative-sticky", {"lag": 5_000}),
    "cooperative, static": ("cooperative-sticky", {"static": True}),
    "uniform": ("uniform", {}),
    "uniform, static": ("uniform", {"static": True}),
    "range of the server": ("range-server", {}),
}
SERVER_SIDE = ("uniform", "range-server")
ELSEWHERE = {"range": "cooperative-sticky", "uniform": "range-server", "range-server": "uniform"}


def main() -> None:
    """Print what is refused, and what takes longest."""
    asked = dict(requests())
    took: list[tuple[float, str]] = []
    refused: list[str] = []
    for name, request in asked.items():
        started = time.process_time()
        try:
            forecast(request)
        except BadInputError as problem:
            refused.append(f"{name}: {str(problem).partition(',')[0]}")
            continue
        took.append((time.process_time() - started, name))
    for line in refused:
        print(f"refused  {line}")
    for seconds, name in sorted(took, reverse=True)[:SHOWN]:
        print(f"{seconds:6.2f} s, the command {_command_s(asked[name]):.2f} s on the clock  {name}")
    over = sum(seconds >= LIMIT_S for seconds, _ in took)
    print(f"{len(took)} forecasts in {sum(seconds for seconds, _ in took):.0f} s, {over} of {LIMIT_S:g} s or more")


def _command_s(request: Document) -> float:
    """Return the seconds on the clock that the whole command takes, the best of ``RUNS``."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(request, file)
        file.flush()
        return min(_once_s([PLANNER, "forecast", file.name, "-o", "json"]) for _ in range(RUNS))


def _once_s(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def requests() -> Iterator[tuple[str, Document]]:
    """Yield every request with its name."""
    return chain(_of_rocketmq(), _of_kafka())


def _of_rocketmq() -> Iterator[tuple[str, Document]]:
    everybody = [client_id(number + 1) for number in range(MEMBERS)]
    for kind, more in ROCKETMQ.items():
        to = "AVG_BY_CIRCLE" if more.get("strategy", "AVG") == "AVG" else "AVG"
        upgrade = {"kind": "upgrade", "clients": everybody, "to": "5.5.0", "interval_s": 30}
        only_here = {
            "upgrade": upgrade,
            "cut from a broker": {
                "kind": "partition",
                "clients": everybody[3:4],
                "for_s": 200,
                "brokers": ["broker-b"],
            },
            "fewer queues": {"kind": "queues", "topic": "T", "broker": "broker-a", "read_queues": 8},
            "broker up": {"kind": "broker_up", "broker": "broker-b"},
        }
        for change, document in {**_changes(everybody, to, "T"), **only_here}.items():
            yield f"RocketMQ, {kind}, {change}", rocketmq_request(document, queues=QUEUES, clients=MEMBERS, **more)


def _of_kafka() -> Iterator[tuple[str, Document]]:
    everybody = [f"c{number}" for number in range(MEMBERS)]
    for kind, (strategy, more) in KAFKA.items():
        upgrade = {"kind": "upgrade", "clients": everybody, "to": "4.4.1", "interval_s": 30}
        changes = _changes(everybody, ELSEWHERE.get(strategy, "range"), "t")
        for change, document in {**changes, "upgrade": upgrade}.items():
            yield f"Kafka, {kind}, {change}", _kafka(document, strategy, more)
        for name, to in (("to the consumer protocol", "uniform"), ("to the classic protocol", "cooperative-sticky")):
            if (strategy in SERVER_SIDE) != (to in SERVER_SIDE):
                document = {"kind": "strategy", "to": to, "clients": everybody, "interval_s": 30}
                yield f"Kafka, {kind}, {name}", _kafka(document, strategy, more)


def _kafka(change: Document, strategy: str, more: Document) -> Document:
    found = kafka_request(change, strategy, partitions=QUEUES, members=MEMBERS, **more)
    for number, partition in enumerate(found["partitions"]["t"]):
        partition["leader"] = f"broker-{'ab'[number % 2]}"
    if change["kind"] == "rolling_update" and more.get("static"):
        change = {**change, "clients": [{"id": None, "instance_id": f"new-{number}"} for number in range(MEMBERS)]}
    return {**found, "change": change}


def _changes(everybody: list[str], to: str, topic: str) -> dict[str, Document]:
    """Return the changes that both systems know."""
    one, four = everybody[3:4], everybody[2:6]
    rolling = {**ROLLING, "max_surge": "25%", "max_unavailable": "25%"}
    return {
        "join": {"kind": "join", "clients": [{"id": NEW[0]}]},
        "eight join, ids not known": {"kind": "join", "clients": [{"id": None}] * 8, "stagger_s": 5},
        "leave": {"kind": "leave", "clients": four, "how": "graceful"},
        "crash": {"kind": "leave", "clients": four, "how": "crash"},
        "silent": {"kind": "leave", "clients": four, "how": "silent"},
        "restart of all": {"kind": "restart", "clients": everybody, "how": "graceful", "interval_s": 30},
        "crash restart of all": {"kind": "restart", "clients": everybody, "how": "crash", "interval_s": 30},
        "freeze": {"kind": "freeze", "clients": one, "for_s": 200},
        "cut": {"kind": "partition", "clients": one, "for_s": 200},
        "rolling update": ROLLING,
        "rolling update by quarters": rolling,
        "blue-green": {
            "kind": "blue_green",
            "to_group": "h",
            "clients": [{"id": name} for name in NEW],
            "clone_s": 5,
            "stop_s": 0,
        },
        "broker down": {"kind": "broker_down", "broker": "broker-b"},
        "more queues": {"kind": "queues", "topic": topic, "broker": "broker-a", "read_queues": 96},
        "strategy of all": {"kind": "strategy", "to": to, "clients": everybody, "interval_s": 30},
    }


if __name__ == "__main__":
    main()
