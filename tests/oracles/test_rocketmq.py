"""Our strategies against RocketMQ's own classes of two client versions, and the broker's own POP allocation."""

from collections.abc import Callable, Iterator
from random import Random

import pytest

from planner.documents.allocation import read_rocketmq
from planner.simulation.rocketmq.ownership import MemberView, ownership
from tests.oracles import topologies
from tests.oracles.compare import Document, differs, explain, first_difference, our_answer, shrink
from tests.oracles.rocketmq import CLIENT_VERSIONS, SERVER_VERSION, RocketMQOracle
from tests.unit.allocation.worked import CONFIG_LIST, CONFIG_ROWS, WORKED

pytestmark = pytest.mark.cluster

REQUESTS = 50_000
OWN_REQUESTS = 3_000
POP_REQUESTS = 3_000
_STEP = 2_500


@pytest.fixture(scope="module", params=CLIENT_VERSIONS)
def oracle(request: pytest.FixtureRequest) -> Iterator[RocketMQOracle]:
    """One JVM for each client version."""
    with RocketMQOracle(request.param) as found:
        yield found


@pytest.fixture(scope="module")
def server() -> Iterator[RocketMQOracle]:
    """The broker's classes."""
    with RocketMQOracle(SERVER_VERSION, with_server=True) as found:
        yield found


def _agree(oracle: RocketMQOracle, numbers: range, make: Callable[[int], Document]) -> None:
    """Fail with the first request that differs, made small; ``numbers`` are asked in steps to bound memory."""
    for start in range(0, len(numbers), _STEP):
        requests = [make(number) for number in numbers[start : start + _STEP]]
        different = first_difference(oracle, requests)
        assert different is None, explain(different, oracle)


def test_random_topologies(oracle: RocketMQOracle) -> None:
    """Half of the requests for each client version, no request asked twice."""
    share = REQUESTS // len(CLIENT_VERSIONS)
    start = CLIENT_VERSIONS.index(oracle.version) * share
    _agree(oracle, range(start, start + share), topologies.request)


def test_our_java_strategies(oracle: RocketMQOracle) -> None:
    """The classes in examples/java inside the real client."""
    _agree(oracle, range(OWN_REQUESTS), lambda number: topologies.request(number, topologies.OUR_STRATEGIES))


def test_pop_allocation_of_the_broker(server: RocketMQOracle) -> None:
    _agree(server, range(POP_REQUESTS), topologies.pop_request)


@pytest.mark.parametrize("row", WORKED)
def test_the_class_agrees_with_the_worked_row(row: str, oracle: RocketMQOracle) -> None:
    assert oracle.answer(WORKED[row].request) == WORKED[row].assignments


@pytest.mark.parametrize("row", CONFIG_ROWS)
def test_the_class_agrees_with_the_config_row(row: str, oracle: RocketMQOracle) -> None:
    lists, owned = CONFIG_ROWS[row]
    request = {"strategy": "CONFIG", "queues": CONFIG_LIST, "clients": ["c0", "c1"], "options": {"config": lists}}
    answer = oracle.answer(request)
    assert {client: [queue[2] for queue in queues] for client, queues in answer.items()} == owned


def test_an_id_that_is_not_in_the_list_gets_nothing(oracle: RocketMQOracle) -> None:
    """rocketmq.md 8, rows 3 and 7: an empty answer, no exception."""
    for strategy in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"):
        request = {**WORKED["avg 8 over 3"].request, "strategy": strategy, "ask": ["stranger"]}
        assert oracle.answer(request) == {"stranger": []}


def test_an_empty_id_is_refused(oracle: RocketMQOracle) -> None:
    """rocketmq.md 8, row 7."""
    request = {**WORKED["avg 8 over 3"].request, "ask": [""]}
    assert "currentCID is empty" in oracle.answer(request)["error"]


@pytest.mark.parametrize("nodes", [1, 2])
def test_colliding_virtual_nodes(nodes: int, oracle: RocketMQOracle) -> None:
    """Ids whose virtual nodes share a hash, with and without one of them twice, and a queue exactly on a node."""
    queues = [{"topic": "T", "broker": "b", "queue_id": queue_id} for queue_id in (*range(20), 176182, 107468)]
    for clients in (
        ["c106893", "c147464"],
        ["c106893", "c106893", "c147464"],
        ["c106893", "c147464", "c147464", "c4000", "c245887"],
        ["c6613", "c9234"],
    ):
        request = {
            "system": "rocketmq",
            "strategy": "CONSISTENT_HASH",
            "queues": queues,
            "clients": clients,
            "options": {"virtual_nodes": nodes},
        }
        assert oracle.answer(request) == our_answer(request)


def test_a_crowded_ring(oracle: RocketMQOracle) -> None:
    """200 members with 200 virtual nodes each."""
    clients = sorted(f"10.0.{number // 250}.{number % 250}@app" for number in range(200))
    request = {
        "system": "rocketmq",
        "strategy": "CONSISTENT_HASH",
        "queues": [{"topic": "T", "broker": "b", "queue_id": queue_id} for queue_id in range(400)],
        "clients": clients,
        "options": {"virtual_nodes": 200},
        "ask": clients[:3],
    }
    answer = oracle.answer(request)
    del request["ask"]
    ours = our_answer(request)
    assert answer == {client: ours[client] for client in clients[:3]}


@pytest.mark.parametrize("seed", range(60))
def test_split_brain_is_what_each_members_class_answers(seed: int, oracle: RocketMQOracle) -> None:
    """Members with strategies, routes, member lists and subscriptions of their own, each asked for itself."""
    random = Random(seed)
    views = [_view(random, f"c{number}", topologies.request(seed * 10 + number)) for number in range(4)]
    answers = oracle.answers([{**request, "ask": [client]} for client, request in views])
    expected: dict[tuple[str, str, int], list[str]] = {}
    for (client, request), answer in zip(views, answers, strict=True):
        seen = {(queue["topic"], queue["broker"], queue["queue_id"]) for queue in request["queues"]}
        for queue in seen:
            expected.setdefault(queue, [])
        for queue in {tuple(owned) for owned in answer[client]} & seen:
            expected[queue].append(client)
    found = ownership(_member_view(client, request) for client, request in views)
    assert {(queue.topic, queue.broker, queue.queue_id): list(owners) for queue, owners in found.owners.items()} == {
        queue: sorted(owners) for queue, owners in expected.items()
    }


def _view(random: Random, client: str, request: Document) -> tuple[str, Document]:
    """Return the client with its view: other members than the others see, in three of four cases itself among them."""
    strategy = random.choice(("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM"))
    options = {"consumer_rooms": ["r1", "r2"]} if strategy == "MACHINE_ROOM" else {}
    members = random.sample(["c0", "c1", "c2", "c3", "c4", "c10"], random.randint(1, 6))
    if random.random() < 0.75 and client not in members:
        members.append(client)
    return client, {**request, "strategy": strategy, "options": options, "clients": members}


def _member_view(client: str, request: Document) -> MemberView:
    read = read_rocketmq(request)
    return MemberView(client, read.strategy, tuple(read.queues), tuple(read.clients))


def test_a_difference_is_found_and_made_small(oracle: RocketMQOracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a wrong AVG the comparison fails, and what is shown has one client and one or two queues."""
    from planner.allocation.rocketmq import averagely

    right = averagely.block_owners
    monkeypatch.setattr(averagely, "block_owners", lambda queues, clients: right(queues, clients)[::-1])
    requests = [topologies.request(number, ("AVG",)) for number in range(50)]
    different = first_difference(oracle, requests)
    assert different is not None
    small = shrink(different, oracle)
    assert differs(small, oracle.answer(small))
    assert len(small["clients"]) <= 2
    assert len(small["queues"]) <= 2
