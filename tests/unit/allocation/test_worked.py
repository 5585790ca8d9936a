"""Every worked row of the reference, against our strategies."""

import pytest

from planner.allocation.group import allocate_group
from planner.allocation.registry import find_strategy
from planner.allocation.request import answer_document
from planner.allocation.rocketmq.consistent_hash import build_ring, client_points, queue_points
from planner.documents.allocation import read_rocketmq
from planner.model.queues import MessageQueue
from tests.unit.allocation.worked import CONFIG_LIST, CONFIG_ROWS, MOVES, WORKED


@pytest.mark.parametrize("row", WORKED)
def test_worked_row(row: str) -> None:
    worked = WORKED[row]
    answer = answer_document(read_rocketmq(worked.request).allocate())
    assert answer["assignments"] == worked.assignments
    assert answer.get("unowned", []) == worked.long(worked.unowned)


@pytest.mark.parametrize("row", CONFIG_ROWS)
def test_config_row(row: str) -> None:
    lists, owned = CONFIG_ROWS[row]
    request = {
        "system": "rocketmq",
        "strategy": "CONFIG",
        "queues": CONFIG_LIST,
        "clients": ["c0", "c1"],
        "options": {"config": lists},
    }
    assignments = answer_document(read_rocketmq(request).allocate())["assignments"]
    assert {client: [queue[2] for queue in queues] for client, queues in assignments.items()} == owned


@pytest.mark.parametrize("row", MOVES)
@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
def test_moved_queues_row(row: str, strategy: str) -> None:
    before, after, *moved = MOVES[row]
    queues = [MessageQueue("TopicA", "b", queue_id) for queue_id in range(16)]
    rule = find_strategy(strategy)
    old, new = ([clients[owner] for owner in rule.owners(queues, clients)] for clients in (before, after))
    changed = sum(left != right for left, right in zip(old, new, strict=True))
    assert changed == dict(zip(("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"), moved, strict=True))[strategy]


def test_known_ring_points() -> None:
    assert client_points("127.0.0.1@c1", 0, 1).tolist() == [1425490763]
    assert client_points("127.0.0.1@c1", 9, 1).tolist() == [97726283]
    assert client_points("CID-0", 0, 3).tolist() == [1900518137, 2611424514, 2684780223]
    assert client_points("CID-1", 0, 3).tolist() == [1110034835, 1145053050, 1973204088]
    assert queue_points([MessageQueue("TopicA", "broker-a", 0)]).tolist() == [1888944553]


def test_known_queue_points() -> None:
    queues = [MessageQueue("topic_test", "brokerName", queue_id) for queue_id in range(6)]
    expected = [2171879703, 3622662134, 611369592, 1454651382, 3475808878, 1643945739]
    assert queue_points(queues).tolist() == expected


def test_known_ring_of_two_clients() -> None:
    ring = build_ring(["CID-0", "CID-1"], 3)
    assert ring.points.tolist() == [1110034835, 1145053050, 1900518137, 1973204088, 2611424514, 2684780223]
    assert ring.clients.tolist() == [1, 1, 0, 1, 0, 0]


def test_no_virtual_nodes_leave_everything_unowned() -> None:
    queues = [MessageQueue("T", "b", queue_id) for queue_id in range(3)]
    found = allocate_group(find_strategy("CONSISTENT_HASH", {"virtual_nodes": 0}), queues, ["c0", "c1"])
    assert found.unowned == queues
    assert found.answer() == {"c0": [], "c1": []}


def test_equal_points_belong_to_the_later_client() -> None:
    """Virtual node 0 of these two ids has the same hash; found by search, as a 32-bit ring collides early."""
    early, late, point = "c106893", "c147464", 3379821892
    assert client_points(early, 0, 1).tolist() == client_points(late, 0, 1).tolist() == [point]
    ring = build_ring([early, late], 1)
    assert (ring.points.tolist(), ring.clients.tolist()) == ([point], [1])


def test_a_queue_exactly_on_a_virtual_node_belongs_to_it() -> None:
    queue = MessageQueue("T", "b", 176182)
    assert queue_points([queue]).tolist() == client_points("c6613", 0, 1).tolist()
    clients = ["c6613", "c9234"]
    assert find_strategy("CONSISTENT_HASH", {"virtual_nodes": 1}).owners([queue], clients).tolist() == [0]


def test_avg_upstream_sizes() -> None:
    """rocketmq.md 8, row 1: 10 queues over 4 ids, sizes 3 3 2 2, contiguous."""
    queues = [MessageQueue("T", "b", queue_id) for queue_id in range(10)]
    owners = find_strategy("AVG").owners(queues, ["c0", "c1", "c2", "c3"]).tolist()
    assert owners == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(("queues", "clients"), [(20, 10), (10, 20)])
@pytest.mark.parametrize("change", ["remove CID-0", "add CID-NEW"])
def test_hash_upstream_moves_nothing_between_survivors(queues: int, clients: int, change: str) -> None:
    """rocketmq.md 8, row 8."""
    owned = [MessageQueue("topic_test", "brokerName", queue_id) for queue_id in range(queues)]
    before = sorted(f"CID-{number}" for number in range(clients))
    after = before[1:] if change == "remove CID-0" else sorted([*before, "CID-NEW"])
    rule = find_strategy("CONSISTENT_HASH", {"virtual_nodes": 3})
    old = [before[owner] for owner in rule.owners(owned, before)]
    new = [after[owner] for owner in rule.owners(owned, after)]
    for left, right in zip(old, new, strict=True):
        assert left in {right, "CID-0"} or right == "CID-NEW"


def _rooms(members: dict[int, int]) -> tuple[list[MessageQueue], list[str], dict[str, dict[str, str]]]:
    queues = [MessageQueue("t", f"IDC{room}-brokerName", number) for room in range(1, 6) for number in range(20)]
    clients = sorted(f"IDC{room}-CID-{number}" for room, count in members.items() for number in range(count))
    tables = {
        "brokers": {queue.broker: queue.broker.split("-")[0] for queue in queues},
        "clients": {client: client.split("-")[0] for client in clients},
    }
    return queues, clients, tables


@pytest.mark.parametrize("members", [10, 20, 30])
def test_nearby_upstream_same_room_only(members: int) -> None:
    """rocketmq.md 8, row 9."""
    queues, clients, tables = _rooms(dict.fromkeys(range(1, 6), members))
    found = allocate_group(find_strategy("MACHINE_ROOM_NEARBY", {"machine_rooms": tables}), queues, clients)
    assert found.owner_counts.tolist() == [1] * len(queues)
    for client, owned in found.answer().items():
        assert {queue.broker.split("-")[0] for queue in owned} <= {client.split("-")[0]}


def test_nearby_upstream_without_consumers() -> None:
    """rocketmq.md 8, row 9: none owned when there is no consumer."""
    queues, clients, tables = _rooms({})
    found = allocate_group(find_strategy("MACHINE_ROOM_NEARBY", {"machine_rooms": tables}), queues, clients)
    assert found.answer() == {}
    assert found.unowned == queues


def test_nearby_upstream_a_room_more() -> None:
    """rocketmq.md 8, row 10: members of a sixth room, which has no brokers, get nothing."""
    queues, clients, tables = _rooms(dict.fromkeys(range(1, 7), 10))
    found = allocate_group(find_strategy("MACHINE_ROOM_NEARBY", {"machine_rooms": tables}), queues, clients)
    assert found.owner_counts.tolist() == [1] * len(queues)
    assert all(not owned for client, owned in found.answer().items() if client.startswith("IDC6"))


def test_nearby_upstream_two_rooms_fewer() -> None:
    """rocketmq.md 8, row 10: every populated room gets at least all its own queues."""
    queues, clients, tables = _rooms(dict.fromkeys(range(1, 4), 10))
    found = allocate_group(find_strategy("MACHINE_ROOM_NEARBY", {"machine_rooms": tables}), queues, clients)
    assert found.owner_counts.tolist() == [1] * len(queues)
    answer = found.answer()
    for room in ("IDC1", "IDC2", "IDC3"):
        held = {queue for client, owned in answer.items() if client.startswith(room) for queue in owned}
        assert held >= {queue for queue in queues if queue.broker.startswith(room)}


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
@pytest.mark.parametrize("share", [0, 1, 2, 5, 15])
def test_pop_upstream_sizes(strategy: str, share: int) -> None:
    """rocketmq.md 8, rows 11 to 13, for 1 to 16 queues and 1 to 16 clients."""
    from planner.allocation.rocketmq import PopSharing

    rule = PopSharing(find_strategy(strategy), share)
    for queue_count in range(1, 17):
        queues = [MessageQueue("T", "b", queue_id) for queue_id in range(queue_count)]
        for client_count in range(1, 17):
            clients = [f"c{number:02}" for number in range(client_count)]
            found = rule.holdings(queues, clients)
            sizes = [found.holders.tolist().count(slot) for slot in range(client_count)]
            if share <= 0 or share >= client_count - 1:
                assert sizes == [queue_count] * client_count
            elif queue_count < client_count:
                assert sizes == [1] * client_count
            elif strategy != "CONSISTENT_HASH":
                least = queue_count // client_count * (share + 1)
                most = least if queue_count % client_count == 0 else least + share + 1
                assert all(least <= size <= most for size in sizes)
