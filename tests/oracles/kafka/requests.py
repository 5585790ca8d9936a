"""Random requests, each made from one number: adversarial where real groups go wrong."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.allocations import assign

Document = dict[str, Any]

CLIENT_STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")
SERVER_STRATEGIES = ("uniform", "range-server")
STRATEGIES = (*CLIENT_STRATEGIES, *SERVER_STRATEGIES)

_TOPICS = ("t10", "t2", "t1", "T", "orders", "orders.v2", "a", "\U0001f600", "\uff21", "é", "t-0", "zz")
_WEIGHTS = {"range": 2, "roundrobin": 1, "sticky": 4, "cooperative-sticky": 4, "uniform": 3, "range-server": 1}


def random_request(number: int, strategies: Sequence[str] = STRATEGIES) -> Document:
    """Return request ``number``: the same one every time."""
    random = Random(number)
    strategy = random.choices(strategies, [_WEIGHTS[one] for one in strategies])[0]
    partitions = _partitions(random)
    members = _members(random, list(partitions))
    options: Document = {}
    if random.random() < 0.35:
        options["partition_racks"] = _racks(random, partitions, members)
    if strategy == "cooperative-sticky" and random.random() < 0.7:
        options["cooperative_round"] = random.choice(("first", "first", "final"))
    request = {
        "system": "kafka",
        "strategy": strategy,
        "partitions": partitions,
        "members": members,
        "options": options,
    }
    _add_claims(random, request)
    random.shuffle(members)
    return request


def _partitions(random: Random) -> dict[str, int]:
    count = random.choice((1, 1, 2, 2, 3, 3, 4, 5, 6, 12))
    names = random.sample(_TOPICS, count)
    same = random.choice((0, 0, random.randint(1, 9)))
    return {name: same or random.choice((0, 1, 1, 2, 3, 4, 5, 6, 7, 9, 13, 30)) for name in names}


def _members(random: Random, topics: list[str]) -> list[Document]:
    count = random.choice((0, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 11, 17, 40)) if random.random() > 0.03 else 90
    subscription = _subscription(random, topics)
    is_mixed = random.random() < 0.5
    has_static, has_idle, has_racks = random.random() < 0.3, random.random() < 0.04, random.random() < 0.4
    members: list[Document] = []
    for index, member_id in enumerate(_ids(random, count)):
        member: Document = {"id": member_id, "topics": subscription}
        if is_mixed and random.random() < 0.7:
            member["topics"] = random.sample(topics, random.randint(1, len(topics)))
        if has_idle and random.random() < 0.2:
            member["topics"] = []
        if has_static and random.random() < 0.6:
            member["instance_id"] = f"i{(index * 7) % 101}"
        if has_racks and random.random() < 0.8:
            member["rack"] = random.choice(("r1", "r2", "r3", "", "r9"))
        members.append(member)
    return members


def _subscription(random: Random, topics: list[str]) -> list[str]:
    chosen = list(topics) if random.random() < 0.7 else random.sample(topics, random.randint(1, len(topics)))
    if random.random() < 0.1:
        chosen.append("no-such-topic")
    return chosen


def _ids(random: Random, count: int) -> list[str]:
    style = random.choice(("c{}", "consumer-{}", "{}", "C{}-{:08x}", "{:08x}", "\U0001f600{}", "mixed"))
    if style == "mixed":
        return [random.choice(("a{}", "\uff21{}", "\U0001f600{}", "é{}")).format(index) for index in range(count)]
    if style.count("{") == 2:
        return [style.format(index, random.getrandbits(32)) for index in range(count)]
    if style == "{:08x}":
        return [style.format(number) for number in random.sample(range(2**32), count)]
    return [style.format(index) for index in range(count)]


def _racks(random: Random, partitions: dict[str, int], members: list[Document]) -> Document:
    racks = sorted({member["rack"] for member in members if member.get("rack")} | {"r1", "r2"})
    width = random.choice((1, 1, 2, len(racks)))
    if random.random() < 0.5:
        return {
            topic: [[racks[(number + step) % len(racks)] for step in range(width)] for number in range(count)]
            for topic, count in partitions.items()
        }
    return {
        topic: [random.sample(racks, random.randint(0, width)) for _ in range(count)]
        for topic, count in partitions.items()
        if random.random() < 0.85
    }


def _add_claims(random: Random, request: Document) -> None:
    is_server = request["strategy"] in SERVER_STRATEGIES
    kind = random.choice((None, _from_before, _from_before, _scattered, _scattered if is_server else _conflicting))
    if kind is None or not request["members"]:
        return
    kind(random, request)
    _add_generations(random, request["members"])


def _from_before(random: Random, request: Document) -> None:
    """Let members own what they got before some joined, left or subscribed otherwise."""
    before = [dict(member) for member in request["members"] if random.random() < 0.8]
    before += [{"id": f"gone-{index}", "topics": list(request["partitions"])} for index in range(random.randint(0, 2))]
    if random.random() < 0.3:
        for member in before:
            member["topics"] = list(request["partitions"])
    partitions = request["partitions"]
    if random.random() < 0.2:
        partitions = {topic: random.randint(0, count) for topic, count in partitions.items()}
    strategy = random.choice((request["strategy"], "roundrobin", "sticky"))
    got = assign({"strategy": strategy, "partitions": partitions, "members": before})["assignments"]
    for member in request["members"]:
        member["owned"] = [list(one) for one in got.get(member["id"], [])]


def _scattered(random: Random, request: Document) -> None:
    """Let members own what chance gives them, out of balance and beyond their subscriptions."""
    share = random.random()
    few = random.sample(request["members"], random.randint(1, len(request["members"])))
    for topic, number in _all(request["partitions"]):
        if random.random() < share:
            random.choice(few).setdefault("owned", []).append([topic, number])


def _conflicting(random: Random, request: Document) -> None:
    """Let several members claim the same partitions."""
    share = random.choice((0.2, 0.5, 1.0))
    for topic, number in _all(request["partitions"]):
        if random.random() < share:
            most = min(len(request["members"]), random.choice((1, 1, 2, 2, 3, 4)))
            for member in random.sample(request["members"], most):
                member.setdefault("owned", []).append([topic, number])


def _add_generations(random: Random, members: list[Document]) -> None:
    styles: tuple[Callable[[], int | None], ...] = (
        lambda: 5,
        lambda: 5,
        lambda: random.choice((5, 5, 5, 4)),
        lambda: random.choice((None, -1, 3, 4, 5)),
        lambda: random.choice((None, -1)),
        lambda: random.choice((6, 7)),
    )
    style = random.choice(styles)
    for member in members:
        generation = style()
        if generation is not None or random.random() < 0.5:
            member["generation"] = generation


def _all(partitions: dict[str, int]) -> list[tuple[str, int]]:
    return [(topic, number) for topic, count in partitions.items() for number in range(count)]


def large_request(number: int) -> Document:
    """Return a request with thousands of partitions: mixed or equal subscriptions, racks or none, claims or none."""
    random = Random(number)
    strategy = random.choice(("sticky", "cooperative-sticky", "uniform", "range"))
    partitions = {name: random.randint(200, 700) for name in random.sample(_TOPICS, random.randint(2, 4))}
    topics = list(partitions)
    members: list[Document] = [
        {"id": f"orders-{random.getrandbits(64):016x}", "topics": topics} for _ in range(random.randint(20, 60))
    ]
    if number % 2:
        for member in members:
            member["topics"] = random.sample(topics, random.randint(1, len(topics)))
    options: Document = {}
    if number % 3 == 0:
        for member in members:
            member["rack"] = random.choice(("r1", "r2", "r3"))
        options["partition_racks"] = _racks(random, partitions, members)
    request = {"strategy": strategy, "partitions": partitions, "members": members, "options": options}
    kind = random.choice((_from_before, _scattered))
    kind(random, request)
    _add_generations(random, members)
    return request
