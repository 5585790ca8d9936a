"""Our own strategies: the worked examples of docs/strategies.md, and what happens when the chosen ones are missing."""

from typing import Any

import pytest

from planner.allocation.extra.names import host_of, stable_name
from planner.documents.allocation import answer


def queues(*numbers: int) -> list[dict[str, Any]]:
    return [{"topic": "T", "broker": "b", "queue_id": number} for number in numbers]


def owned(strategy: str, options: dict[str, Any], count: int, clients: list[str]) -> dict[str, list[int]]:
    """Return queue ids by client, in the order in which the class returns them."""
    request = {
        "system": "rocketmq",
        "strategy": strategy,
        "queues": queues(*range(count)),
        "clients": clients,
        "options": options,
    }
    return {client: [queue[2] for queue in held] for client, held in answer(request)["assignments"].items()}


VIP = {"vip_queues": queues(0, 1), "vip_clients": ["v"]}
STATIC = {"reserved": {"a": queues(0, 1), "b": queues(2, 3)}}
HOSTS = {"hosts": ["10.0.0.1"]}


@pytest.mark.parametrize(
    ("clients", "expected"),
    [
        (["h@a", "h@b", "h@v"], {"h@a": [2, 3], "h@b": [4, 5], "h@v": [0, 1]}),
        (["h@a", "h@b"], {"h@a": [0, 2, 3], "h@b": [1, 4, 5]}),
        (["g@v", "h@v"], {"g@v": [0, 2, 3], "h@v": [1, 4, 5]}),
        (["h@a", "h@v@unit"], {"h@a": [2, 3, 4, 5], "h@v@unit": [0, 1]}),
    ],
    ids=["both kinds", "no VIP client", "VIP clients only", "a unit name after the instance"],
)
def test_vip(clients: list[str], expected: dict[str, list[int]]) -> None:
    assert owned("VIP", VIP, 6, clients) == expected


def test_vip_clients_that_come_and_go_move_vip_queues_only() -> None:
    with_vip, without = (owned("VIP", VIP, 6, clients) for clients in (["h@a", "h@b", "h@v"], ["h@a", "h@b"]))
    for client in ("h@a", "h@b"):
        assert [queue for queue in without[client] if queue > 1] == with_vip[client]


@pytest.mark.parametrize(
    ("clients", "expected"),
    [
        (["10.0.0.1@a", "10.0.0.1@b", "10.0.0.2@c"], {"10.0.0.1@a": [0, 1], "10.0.0.1@b": [2, 3], "10.0.0.2@c": []}),
        (["10.0.0.2@c"], {"10.0.0.2@c": []}),
        (["10.0.0.11@a", "10.0.0.1"], {"10.0.0.1": [0, 1, 2, 3], "10.0.0.11@a": []}),
    ],
    ids=["named hosts share", "nobody on a named host", "the whole id is the host without @"],
)
def test_specified_machine(clients: list[str], expected: dict[str, list[int]]) -> None:
    assert owned("SPECIFIED_MACHINE", HOSTS, 4, clients) == expected


@pytest.mark.parametrize(
    ("clients", "expected"),
    [
        (["h@a", "h@b"], {"h@a": [0, 1, 4], "h@b": [2, 3, 5]}),
        (["h@a"], {"h@a": [0, 1, 2, 3, 4, 5]}),
        (["h@a", "h@b", "h@c"], {"h@a": [0, 1, 4], "h@b": [2, 3, 5], "h@c": []}),
        (["10.9.9.9@a", "h@b"], {"10.9.9.9@a": [0, 1, 4], "h@b": [2, 3, 5]}),
        (["g@a", "h@a"], {"g@a": [0, 1, 2, 3], "h@a": [4, 5]}),
    ],
    ids=["all there", "b is away", "one more than reserved", "another address", "two of one name"],
)
def test_static(clients: list[str], expected: dict[str, list[int]]) -> None:
    assert owned("STATIC", STATIC, 6, clients) == expected


def test_an_empty_name_reserves_nothing() -> None:
    assert owned("STATIC", {"reserved": {}}, 2, ["h@", "h@a"]) == {"h@": [0], "h@a": [1]}


def test_the_rest_can_be_spread_otherwise() -> None:
    found = owned("STATIC", {"reserved": {}, "inner": "AVG_BY_CIRCLE"}, 4, ["h@a", "h@b"])
    assert found == {"h@a": [0, 2], "h@b": [1, 3]}


@pytest.mark.parametrize(
    ("client", "host", "name"),
    [
        ("10.0.0.1@c1", "10.0.0.1", "c1"),
        ("10.0.0.1@c1@unit@STREAM", "10.0.0.1", "c1"),
        ("alone", "alone", "alone"),
        ("@x", "", "x"),
        ("h@", "h", ""),
    ],
)
def test_names_in_a_client_id(client: str, host: str, name: str) -> None:
    assert (host_of(client), stable_name(client)) == (host, name)


def test_pop_of_the_page() -> None:
    assert owned("AVG", {"pop_share_queues": 1}, 4, ["c0", "c1", "c2", "c3"]) == {
        "c0": [0, 1],
        "c1": [1, 2],
        "c2": [2, 3],
        "c3": [3, 0],
    }
