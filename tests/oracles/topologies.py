"""Random requests, each from its number alone, bent towards what goes wrong: ordering, rooms, duplicates, shortages."""

from random import Random
from typing import Any

Document = dict[str, Any]

CLIENT_STRATEGIES = (
    "AVG",
    "AVG_BY_CIRCLE",
    "CONFIG",
    "MACHINE_ROOM",
    "MACHINE_ROOM_NEARBY",
    "CONSISTENT_HASH",
)
OUR_STRATEGIES = ("SPECIFIED_MACHINE", "STATIC", "VIP")
INNER = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")

_TOPICS = ("T", "T1", "T10", "T2", "order-topic", "%RETRY%g", "主题", "\U0001f600", "\uff21", "t", "a b", 'q"\\')
_BROKERS = (
    "broker-a",
    "broker-b",
    "broker-1",
    "broker-10",
    "broker-2",
    "Broker-a",
    "b",
    "__syslo__g",
    "\uff21b",
    "\U0001f600b",
)
_ROOMS = ("r1", "r2", "r10", "", "R1", "r 1", "房")
_ODD_BROKERS = ("r1", "r1@", "@b", "r1@@b", "r1@x@y", "a@b@", "r1@b", "@", "r2@b@@", "r10@b", "@@", " @b")


def request(number: int, strategies: tuple[str, ...] = CLIENT_STRATEGIES) -> Document:
    """Return request ``number``: the same document on every call and machine."""
    random = Random(number)
    strategy = strategies[number % len(strategies)]
    brokers = _brokers(random, strategy)
    queues = _queues(random, brokers)
    clients = _clients(random)
    document = {
        "system": "rocketmq",
        "strategy": strategy,
        "group": "g",
        "queues": queues,
        "clients": clients,
        "options": _options(random, strategy, queues, clients, brokers),
    }
    random.shuffle(queues)
    random.shuffle(clients)
    return document


def pop_request(number: int) -> Document:
    """Return a request for server-side POP allocation: a seventh of them share everything."""
    random = Random(number)
    document = request(number, ("AVG", "AVG_BY_CIRCLE"))
    document["options"] = {"pop_share_queues": random.randint(-1, len(document["clients"]) + 1)}
    return document


def _brokers(random: Random, strategy: str) -> list[str]:
    count = random.choice((1, 1, 2, 3, 5))
    if strategy != "MACHINE_ROOM":
        return random.sample(_BROKERS, count)
    named = [f"{room}@{broker}" for room in _ROOMS for broker in ("b1", "b10", "b2")]
    return random.sample([*named, *_ODD_BROKERS], count + 1)


def _queues(random: Random, brokers: list[str]) -> list[Document]:
    topics = random.sample(_TOPICS, random.choice((1, 1, 1, 2, 3)))
    return [
        {"topic": topic, "broker": broker, "queue_id": queue_id}
        for topic in topics
        for broker in brokers
        if random.random() < 0.9
        for queue_id in range(1 if topic.startswith("%RETRY%") else random.choice((1, 2, 4, 4, 8, 12)))
    ]


def _clients(random: Random) -> list[str]:
    count = random.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 9, 12, 17))
    kind = random.randrange(5)
    names = [_client(random, kind) for _ in range(count)]
    if random.random() < 0.8:
        names = list(dict.fromkeys(names))
    elif names and random.random() < 0.5:
        names += random.choices(names, k=random.randint(1, 3))
    return names


def _client(random: Random, kind: int) -> str:
    if kind == 0:
        host, process = random.choice((1, 2, 3, 10, 20, 100)), random.choice((1, 9, 99, 100))
        return f"10.0.0.{host}@{process}#{random.randrange(10**14)}"
    if kind == 1:
        return f"127.0.0.1@c{random.randint(0, 24)}"
    if kind == 2:
        return f"10.0.0.{random.randint(1, 3)}@pod-{random.randint(0, 11)}@unit{random.choice(('', 'A'))}"
    if kind == 3:
        return f"c{random.randint(0, 12)}"
    return random.choice(("\U0001f600", "\uff21", "é", "@", "h@", "h@@u", "z ", "A")) + str(random.randint(0, 9))


def _options(random: Random, strategy: str, queues: list[Document], clients: list[str], brokers: list[str]) -> Document:
    if strategy == "CONFIG":
        return {"config": _config(random, queues, clients)}
    if strategy == "MACHINE_ROOM":
        return {"consumer_rooms": random.sample((*_ROOMS, "nowhere"), random.randint(0, 4))}
    if strategy == "CONSISTENT_HASH":
        return _virtual_nodes(random)
    if strategy == "MACHINE_ROOM_NEARBY":
        return _nearby(random, clients, brokers)
    if strategy in OUR_STRATEGIES:
        return _ours(random, strategy, queues, clients)
    return {}


def _virtual_nodes(random: Random) -> Document:
    return random.choice(({}, {}, {"virtual_nodes": random.choice((0, 1, 2, 3, 10, 10, 40, 200))}))


def _config(random: Random, queues: list[Document], clients: list[str]) -> Document:
    foreign = {"topic": "elsewhere", "broker": "b", "queue_id": 3}
    return {
        client: random.sample([*queues, foreign], random.randint(0, min(6, len(queues))))
        for client in clients
        if random.random() < 0.8
    }


def _nearby(random: Random, clients: list[str], brokers: list[str]) -> Document:
    rooms = random.sample([room for room in _ROOMS if room] + ["\U0001f600", "\uff21"], random.randint(1, 4))
    inner = random.choice(INNER)
    table = {
        "brokers": {broker: random.choice(rooms) for broker in brokers},
        "clients": {client: random.choice(rooms[:2] if random.random() < 0.5 else rooms) for client in clients},
        "inner": inner,
    }
    return {"machine_rooms": table, **(_virtual_nodes(random) if inner == "CONSISTENT_HASH" else {})}


def _ours(random: Random, strategy: str, queues: list[Document], clients: list[str]) -> Document:
    inner = random.choice(INNER)
    options: Document = {"inner": inner, **(_virtual_nodes(random) if inner == "CONSISTENT_HASH" else {})}
    some = random.sample(clients, random.randint(0, len(clients)))
    if strategy == "SPECIFIED_MACHINE":
        return {**options, "hosts": [*(client.split("@")[0] for client in some), "10.9.9.9"]}
    names = [*(client.split("@")[1] if "@" in client else client for client in some), "absent"]
    chosen = random.sample(queues, random.randint(0, len(queues)))
    if strategy == "VIP":
        return {**options, "vip_queues": chosen, "vip_clients": names}
    reserved: Document = {name: [] for name in names}
    for queue in chosen:
        reserved[random.choice(names)].append(queue)
    return {**options, "reserved": reserved}
