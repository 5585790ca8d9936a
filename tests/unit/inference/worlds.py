"""Small random groups under a known strategy, and the plain way to find out what explains them: try everything."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from random import Random
from typing import Any

from planner.allocation.extra.names import host_of, stable_name
from planner.allocation.group import allocate_group
from planner.allocation.registry import find_strategy
from planner.allocation.rocketmq.machine_room import room_of_broker
from planner.inference import Inference, Observation, Search
from planner.model.membership import ClientTuning, Member
from planner.model.queues import MessageQueue

REBALANCE = "org.apache.rocketmq.client.consumer.rebalance."
CLASSES = {
    "AVG": f"{REBALANCE}AllocateMessageQueueAveragely",
    "AVG_BY_CIRCLE": f"{REBALANCE}AllocateMessageQueueAveragelyByCircle",
    "CONFIG": f"{REBALANCE}AllocateMessageQueueByConfig",
    "CONSISTENT_HASH": f"{REBALANCE}AllocateMessageQueueConsistentHash",
    "MACHINE_ROOM": f"{REBALANCE}AllocateMessageQueueByMachineRoom",
    "MACHINE_ROOM_NEARBY": f"{REBALANCE}AllocateMachineRoomNearby",
    "SPECIFIED_MACHINE": "dev.consumerplanner.SpecifiedMachineStrategy",
    "STATIC": "dev.consumerplanner.StaticStrategy",
    "VIP": "dev.consumerplanner.VipStrategy",
}
BROKER_ROOMS = {"r1@a": "r1", "r2@b": "r2"}
INNER = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")

Options = Mapping[str, Any]
Candidate = tuple[str, str]
"""A strategy's name and its parameters in one form, whatever the order and the spelling."""


def tuning(strategy_class: str | None) -> ClientTuning | None:
    """Return the tuning of a client that tells this class, or nothing."""
    return ClientTuning(strategy_class, False, 20, 1, 1000, 0) if strategy_class else None


def member(client: str, owned: Sequence[MessageQueue] | None, strategy_class: str | None = None) -> Member:
    """Return a member that owns these queues, or does not tell."""
    return Member(client, "127.0.0.1:1", "JAVA", 513, tuning(strategy_class), None if owned is None else tuple(owned))


def owned_under(
    strategy: str, options: Options, queues: Sequence[MessageQueue], clients: Sequence[str]
) -> dict[str, set[MessageQueue]]:
    """Return the queues of the routes that each client holds."""
    allocated = allocate_group(find_strategy(strategy, options), queues, clients)
    owned: dict[str, set[MessageQueue]] = {client: set() for client in clients}
    for slot, pick in zip(allocated.holdings.holders.tolist(), allocated.holdings.picks.tolist(), strict=True):
        owned[allocated.clients[slot]].add(allocated.queues[pick])
    return owned


def observe(
    strategy: str,
    options: Options,
    queues: Sequence[MessageQueue],
    clients: Sequence[str],
    *,
    told: bool = False,
    silent: Sequence[str] = (),
) -> Observation:
    """Return what is seen of a group at rest under the strategy."""
    owned = owned_under(strategy, options, queues, clients)
    strategy_class = CLASSES[strategy.partition("-")[0]] if told else None
    return Observation(
        tuple(queues),
        tuple(
            member(client, None if client in silent else sorted(owned[client]), strategy_class)
            for client in dict.fromkeys(clients)
        ),
    )


@dataclass(frozen=True)
class Truth:
    """What a group really runs, and what is seen of it at several times."""

    strategy: str
    options: Options
    observations: tuple[Observation, ...]

    @property
    def candidate(self) -> Candidate:
        return canonical(self.strategy, self.options, self.observations)


def random_truth(
    seed: int,
    strategy: str,
    *,
    told: bool,
    sizes: tuple[int, ...] = (1, 2, 3, 4),
    times: int = 1,
    can_hide: bool = False,
) -> Truth:
    """Return a random group: two brokers in two rooms, one or two topics and up to five clients."""
    random = Random(f"{seed} {strategy}")
    topics = random.choice((["T"], ["T"], ["T", "%RETRY%g"]))
    queues = [
        MessageQueue(topic, broker, number)
        for topic in topics
        for broker in BROKER_ROOMS
        for number in range(1 if topic.startswith("%") else random.choice(sizes))
    ]
    everybody = [
        f"10.0.0.{random.randint(1, 30)}@c{number}" for number in random.sample(range(20), random.randint(1, 4))
    ]
    options = random_options(random, strategy, queues, everybody)
    name = _spelt(random, strategy, options)
    memberships = [everybody, *(_some(random, everybody) for _ in range(times - 1))]
    seen = tuple(
        observe(name, options, queues, clients, told=told, silent=random.sample(clients, 1) if can_hide else ())
        for clients in memberships
    )
    return Truth(name, options, seen)


def _spelt(random: Random, strategy: str, options: Options) -> str:
    """Return the name with which ``find_strategy`` knows it."""
    if strategy == "POP":
        return random.choice(("AVG", "AVG_BY_CIRCLE"))
    return f"{strategy}-{options['machine_rooms']['inner']}" if strategy == "MACHINE_ROOM_NEARBY" else strategy


def _some(random: Random, clients: Sequence[str]) -> list[str]:
    return random.sample(clients, random.randint(1, len(clients)))


def random_options(random: Random, strategy: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> Options:
    """Return parameters for the strategy; of hashing up to 17 virtual nodes."""
    some = _some(random, clients)
    documents = [document(queue) for queue in queues]
    chosen = random.sample(documents, random.randint(0, len(documents)))
    nodes = {"virtual_nodes": random.choice((0, 1, 2, 3, 3, 10, 17))}
    inner = random.choice(INNER)
    hashing = nodes if inner == "CONSISTENT_HASH" else {}
    homes = {client: random.choice(("r1", "r2", "r2", "r9")) for client in clients}
    reserved: dict[str, list[Options]] = {stable_name(client): [] for client in some}
    for one in chosen:
        reserved[random.choice(list(reserved))].append(one)
    lists = {client: random.sample(documents, random.randint(0, len(documents))) for client in clients}
    around = {"inner": inner, **hashing}
    tables: dict[str, Options] = {
        "POP": {"pop_share_queues": random.randint(-1, len(clients) + 1)},
        "CONSISTENT_HASH": nodes,
        "CONFIG": {"config": lists},
        "MACHINE_ROOM": {"consumer_rooms": random.sample(["r1", "r2"], random.randint(0, 2))},
        "MACHINE_ROOM_NEARBY": {
            "machine_rooms": {"brokers": BROKER_ROOMS, "clients": homes, "inner": inner},
            **hashing,
        },
        "SPECIFIED_MACHINE": {**around, "hosts": [host_of(client) for client in some]},
        "VIP": {**around, "vip_clients": [stable_name(client) for client in some], "vip_queues": chosen},
        "STATIC": {**around, "reserved": reserved},
    }
    return tables.get(strategy, {})


def document(queue: MessageQueue) -> Options:
    """Return the queue as options name it."""
    return {"topic": queue.topic, "broker": queue.broker, "queue_id": queue.queue_id}


def found(inferred: Inference, observations: Sequence[Observation]) -> set[Candidate]:
    """Return everything that inference found."""
    return {
        canonical(one.strategy, options, observations) for one in inferred.explanations for options in one.parameters
    }


def canonical(strategy: str, options: Options, observations: Sequence[Observation]) -> Candidate:
    """Return the candidate in a form that forgets what makes no difference to anybody who was seen."""
    clients = {one.client_id for seen in observations for one in seen.members}
    queues = {queue for seen in observations for queue in seen.queues}
    most = max(len(seen.members) for seen in observations)
    parts = {key: _plain(key, value, clients, queues, most) for key, value in options.items() if key != "inner"}
    if (
        strategy == "CONSISTENT_HASH"
        or options.get("inner") == "CONSISTENT_HASH"
        or strategy.endswith("-CONSISTENT_HASH")
    ):
        parts.setdefault("virtual_nodes", 10)
    if strategy in ("SPECIFIED_MACHINE", "VIP", "STATIC"):
        parts["inner"] = options.get("inner", "AVG")
    return strategy, repr(sorted(parts.items()))


def _plain(key: str, value: Any, clients: set[str], queues: set[MessageQueue], most: int) -> object:
    names, hosts = {stable_name(client) for client in clients}, {host_of(client) for client in clients}
    forms: dict[str, Callable[[], object]] = {
        "pop_share_queues": lambda: value if 0 < value < most - 1 else 0,
        "consumer_rooms": lambda: sorted(set(value) & {room_of_broker(queue.broker) for queue in queues}),
        "machine_rooms": lambda: (sorted(value["brokers"].items()), sorted(_homes(value, clients).items())),
        "hosts": lambda: sorted(set(value) & hosts),
        "vip_clients": lambda: sorted(set(value) & names),
        "vip_queues": lambda: sorted(map(str, _queues(value) & queues)),
        "reserved": lambda: sorted(
            (str(queue), name) for name, held in value.items() if name in names for queue in _queues(held) & queues
        ),
        "config": lambda: sorted(
            (client, sorted(map(str, _queues(held) & queues))) for client, held in value.items() if client in clients
        ),
    }
    return forms[key]() if key in forms else value


def _homes(rooms: Mapping[str, Mapping[str, str]], clients: set[str]) -> dict[str, str]:
    """Return the clients' rooms; those without brokers are one and the same."""
    real = set(rooms["brokers"].values())
    return {client: room if room in real else "" for client, room in rooms["clients"].items() if client in clients}


def _queues(documents: Sequence[Options]) -> set[MessageQueue]:
    return {MessageQueue(one["topic"], one["broker"], one["queue_id"]) for one in documents}


def explains(strategy: str, options: Options, observations: Sequence[Observation]) -> bool:
    """Return whether every member that tells owns what the strategy gives it, by computing all of it."""
    for seen in observations:
        owned = owned_under(strategy, options, seen.queues, [one.client_id for one in seen.members])
        if any(
            owned[one.client_id] != set(one.owned) & set(seen.queues) for one in seen.members if one.owned is not None
        ):
            return False
    return True


BRUTE = Search(
    most_virtual_nodes=3, guessed_virtual_nodes=3, most_tried=10**6, most_guessed=10**6, broker_rooms=(BROKER_ROOMS,)
)
"""A search that leaves nothing out, with so few virtual nodes that everything can be tried by hand, too."""


def reservations(observations: Sequence[Observation]) -> int:
    """Return how many choices ``STATIC`` has, the most of all strategies."""
    clients = {one.client_id for seen in observations for one in seen.members}
    return int((1 + len(clients)) ** len({queue for seen in observations for queue in seen.queues}))


def everything(observations: Sequence[Observation]) -> Iterator[tuple[str, Options]]:
    """Yield every strategy with every set of parameters that ``BRUTE`` covers, ``CONFIG`` aside."""
    clients = sorted({one.client_id for seen in observations for one in seen.members})
    documents = [document(queue) for queue in sorted({queue for seen in observations for queue in seen.queues})]
    nodes = [{"virtual_nodes": number} for number in range(BRUTE.most_virtual_nodes + 1)]
    inners = [("AVG", {}), ("AVG_BY_CIRCLE", {}), *(("CONSISTENT_HASH", one) for one in nodes)]
    yield from inners
    shares = range(max(1, len(clients) - 1))
    yield from ((name, {"pop_share_queues": share}) for name, share in product(("AVG", "AVG_BY_CIRCLE"), shares))
    yield from (("MACHINE_ROOM", {"consumer_rooms": rooms}) for rooms in _subsets(["r1", "r2"]))
    for inner, more in inners:
        for homes in product(("r1", "r2", "r9"), repeat=len(clients)):
            rooms = {"brokers": BROKER_ROOMS, "clients": dict(zip(clients, homes, strict=True)), "inner": inner}
            yield f"MACHINE_ROOM_NEARBY-{inner}", {"machine_rooms": rooms, **more}
        yield from _around({"inner": inner, **more}, clients, documents)


def _around(inner: Options, clients: Sequence[str], documents: Sequence[Options]) -> Iterator[tuple[str, Options]]:
    names = [stable_name(client) for client in clients]
    for hosts in _subsets(sorted({host_of(client) for client in clients})):
        yield "SPECIFIED_MACHINE", {**inner, "hosts": hosts}
    for vips, chosen in product(_subsets(names), _subsets(documents)):
        yield "VIP", {**inner, "vip_clients": vips, "vip_queues": chosen}
    for owners in product([None, *names], repeat=len(documents)):
        pairs = list(zip(documents, owners, strict=True))
        yield "STATIC", {**inner, "reserved": {name: [one for one, own in pairs if own == name] for name in names}}


def _subsets(items: Sequence[Any]) -> list[list[Any]]:
    return [list(part) for part in chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))]
