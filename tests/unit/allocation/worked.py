"""The worked rows of docs on RocketMQ's allocation, each by name: what the reference says that the classes answer.

Queues and answers are written short: ``a0`` is queue 0 of the broker that ``brokers`` calls ``a``.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Worked:
    """One row: a request in short form, and who owns what; ``unowned`` must be exactly the queues left over."""

    strategy: str
    brokers: dict[str, tuple[str, int]]
    clients: list[str]
    owned: dict[str, str]
    unowned: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    topic: str = "T"

    @property
    def request(self) -> dict[str, Any]:
        """The request document, queues and clients in reverse order so that sorting is part of the test."""
        queues = [
            {"topic": self.topic, "broker": name, "queue_id": queue_id}
            for name, count in self.brokers.values()
            for queue_id in range(count)
        ]
        return {
            "system": "rocketmq",
            "strategy": self.strategy,
            "group": "g",
            "queues": queues[::-1],
            "clients": self.clients[::-1],
            "options": self.options,
        }

    def long(self, short: str) -> list[list[Any]]:
        """Return ``a0 b1`` as queue documents."""
        return [[self.topic, self.brokers[queue[0]][0], int(queue[1:])] for queue in short.split()]

    @property
    def assignments(self) -> dict[str, list[list[Any]]]:
        """The answer in the contract's form."""
        return {client: self.long(queues) for client, queues in self.owned.items()}


def _members(count: int, prefix: str = "c") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def _one(strategy: str, queues: int, owned: list[str], clients: list[str] | None = None, unowned: str = "") -> Worked:
    clients = clients or _members(len(owned))
    distinct = list(dict.fromkeys(clients))
    shares = [" ".join(f"b{queue}" for queue in share.split()) for share in owned]
    left = " ".join(f"b{queue}" for queue in unowned.split())
    return Worked(strategy, {"b": ("broker-b", queues)}, clients, dict(zip(distinct, shares, strict=True)), left)


def _hash(
    brokers: dict[str, tuple[str, int]], owned: dict[str, str], clients: list[str], topic: str, nodes: int | None = 10
) -> Worked:
    options = {} if nodes is None else {"virtual_nodes": nodes}
    return Worked("CONSISTENT_HASH", brokers, clients, owned, "", options, topic)


def _rooms(rooms: list[str], r1: int, r2: int, owned: list[str], unowned: str = "") -> Worked:
    brokers = {"a": ("r1@broker-a", r1), "b": ("r2@broker-b", r2)}
    clients = _members(len(owned))
    options = {"consumer_rooms": rooms}
    return Worked("MACHINE_ROOM", brokers, clients, dict(zip(clients, owned, strict=True)), unowned, options)


def _nearby(queues: dict[str, int], owned: dict[str, str], inner: str = "AVG") -> Worked:
    brokers = {room: (f"{room}-b", count) for room, count in queues.items()}
    tables = {
        "brokers": {f"{room}-b": room for room in queues},
        "clients": {client: client.split("-")[0] for client in owned},
        "inner": inner,
    }
    return Worked("MACHINE_ROOM_NEARBY", brokers, list(owned), owned, "", {"machine_rooms": tables})


_A_AND_B = {"a": ("broker-a", 4), "b": ("broker-b", 4)}
_LOCAL = {number: f"127.0.0.1@c{number}" for number in (1, 2, 3, 4)}
_TEN = {"b": ("brokerName", 10)}


def _named(count: int) -> dict[str, tuple[str, int]]:
    return {"b": ("brokerName", count)}


WORKED: dict[str, Worked] = {
    "avg 8 over 3": _one("AVG", 8, ["0 1 2", "3 4 5", "6 7"]),
    "avg 10 over 4": _one("AVG", 10, ["0 1 2", "3 4 5", "6 7", "8 9"]),
    "avg 9 over 4": _one("AVG", 9, ["0 1 2", "3 4", "5 6", "7 8"]),
    "avg 16 over 5": _one("AVG", 16, ["0 1 2 3", "4 5 6", "7 8 9", "10 11 12", "13 14 15"]),
    "avg 3 over 5": _one("AVG", 3, ["0", "1", "2", "", ""]),
    "avg 4 over 4": _one("AVG", 4, ["0", "1", "2", "3"]),
    "avg 6 over a duplicate id": _one("AVG", 6, ["0 1", "4 5"], ["a", "a", "b"], "2 3"),
    "circle 8 over 3": _one("AVG_BY_CIRCLE", 8, ["0 3 6", "1 4 7", "2 5"]),
    "circle 10 over 4": _one("AVG_BY_CIRCLE", 10, ["0 4 8", "1 5 9", "2 6", "3 7"]),
    "circle 16 over 5": _one("AVG_BY_CIRCLE", 16, ["0 5 10 15", "1 6 11", "2 7 12", "3 8 13", "4 9 14"]),
    "circle 3 over 5": _one("AVG_BY_CIRCLE", 3, ["0", "1", "2", "", ""]),
    "circle 6 over a duplicate id": _one("AVG_BY_CIRCLE", 6, ["0 3", "2 5"], ["a", "a", "b"], "1 4"),
    "machine room r1 of two rooms": _rooms(["r1"], 5, 5, ["a0 a1 a4", "a2 a3"], "b0 b1 b2 b3 b4"),
    "machine room 7 over 3": _rooms(["r1"], 7, 0, ["a0 a1 a6", "a2 a3", "a4 a5"]),
    "machine room more members than queues": _rooms(["r1"], 2, 4, ["a0", "a1", "", "", ""], "b0 b1 b2 b3"),
    "machine room both rooms": _rooms(["r1", "r2"], 5, 5, ["a0 a1 a2 b4", "a3 a4 b0", "b1 b2 b3"]),
    "hash three members": _hash(
        _A_AND_B,
        {_LOCAL[1]: "a0 b0 b1 b2", _LOCAL[2]: "a2 a3 b3", _LOCAL[3]: "a1"},
        [_LOCAL[1], _LOCAL[2], _LOCAL[3]],
        "TopicA",
    ),
    "hash c2 removed": _hash(
        _A_AND_B, {_LOCAL[1]: "a0 b0 b1 b2", _LOCAL[3]: "a1 a2 a3 b3"}, [_LOCAL[1], _LOCAL[3]], "TopicA", None
    ),
    "hash c4 added": _hash(
        _A_AND_B,
        {_LOCAL[1]: "a0 b1 b2", _LOCAL[2]: "a3 b3", _LOCAL[3]: "a1", _LOCAL[4]: "a2 b0"},
        list(_LOCAL.values()),
        "TopicA",
    ),
    "hash 6 over 2": _hash(_named(6), {"CID-0": "b1 b3 b4 b5", "CID-1": "b0 b2"}, ["CID-0", "CID-1"], "topic_test"),
    "hash 10 over 4 with 3 virtual nodes": _hash(
        _named(10),
        {"CID-0": "b3 b5 b8", "CID-1": "b2", "CID-2": "b4", "CID-3": "b0 b1 b6 b7 b9"},
        _members(4, "CID-"),
        "topic_test",
        3,
    ),
    "hash fewer queues than members": _hash(
        _named(2), {"CID-0": "b1", "CID-1": "", "CID-2": "b0", "CID-3": ""}, _members(4, "CID-"), "topic_test"
    ),
    "hash a duplicate id counts twice": _hash(
        _named(4), {"CID-0": "b1 b2 b3", "CID-1": "b0"}, ["CID-0", "CID-0", "CID-1"], "topic_test"
    ),
    "hash 3 virtual nodes": _hash(
        _named(6), {"CID-0": "b0 b3 b5", "CID-1": "b1 b2 b4"}, ["CID-0", "CID-1"], "topic_test", 3
    ),
    "nearby every room has members": _nearby(
        {"A": 4, "B": 4}, {"A-c0": "A0 A1", "A-c1": "A2 A3", "B-c0": "B0 B1 B2 B3"}
    ),
    "nearby room B is empty": _nearby({"A": 4, "B": 4}, {"A-c0": "A0 A1 B0 B1", "A-c1": "A2 B2", "A-c2": "A3 B3"}),
    "nearby members without brokers": _nearby({"A": 4, "B": 3}, {"A-c0": "A0 A1 A2 A3 B0", "C-c0": "B1", "C-c1": "B2"}),
    "nearby two empty rooms": _nearby({"A": 2, "B": 2, "D": 3}, {"A-c0": "A0 B0 D0 D1", "A-c1": "A1 B1 D2"}),
    "nearby by circle": _nearby(
        {"A": 3, "B": 5}, {"A-c0": "A0 A2 B0 B3", "A-c1": "A1 B1 B4", "C-c0": "B2"}, "AVG_BY_CIRCLE"
    ),
    "upstream 2 circle sets": _one("AVG_BY_CIRCLE", 10, ["0 4 8", "1 5 9", "2 6", "3 7"]),
    "upstream 4 machine room": Worked(
        "MACHINE_ROOM",
        {"a": ("room1@broker-a", 5), "b": ("room2@broker-b", 5)},
        ["CID-0", "CID-1"],
        {"CID-0": "a0 a1 a4", "CID-1": "a2 a3"},
        "b0 b1 b2 b3 b4",
        {"consumer_rooms": ["room1"]},
    ),
}
"""Row name to row: rocketmq.md 2.2 to 2.7, and section 8 where it gives queues."""

CONFIG_LIST = [{"topic": "T", "broker": "broker-b", "queue_id": queue_id} for queue_id in range(4)]

CONFIG_ROWS: dict[str, tuple[dict[str, Any], dict[str, list[int]]]] = {
    "two of four queues, whatever the members": ({"c0": CONFIG_LIST[:2]}, {"c0": [0, 1], "c1": []}),
    "upstream 6: both members list the same": (
        {"c0": CONFIG_LIST, "c1": CONFIG_LIST},
        {"c0": [0, 1, 2, 3], "c1": [0, 1, 2, 3]},
    ),
    "an empty list owns nothing": ({"c0": [], "c1": CONFIG_LIST}, {"c0": [], "c1": [0, 1, 2, 3]}),
}

MOVES: dict[str, tuple[list[str], list[str], int, int, int]] = {
    "4 to 5, new id sorts last": (["c0", "c1", "c2", "c3"], ["c0", "c1", "c2", "c3", "c4"], 6, 12, 5),
    "4 to 5, new id sorts first": (["c1", "c2", "c3", "c4"], ["c0", "c1", "c2", "c3", "c4"], 10, 16, 6),
    "4 to 3, last leaves": (["c0", "c1", "c2", "c3"], ["c0", "c1", "c2"], 9, 10, 4),
    "4 to 3, first leaves": (["c0", "c1", "c2", "c3"], ["c1", "c2", "c3"], 7, 13, 9),
}
"""rocketmq.md 2.8: before, after, queues moved under AVG, AVG_BY_CIRCLE, CONSISTENT_HASH; TopicA, b, 16 queues."""
