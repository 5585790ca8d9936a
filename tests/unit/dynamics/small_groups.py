"""Small named requests of ``planner forecast`` for tests."""

from collections.abc import Sequence
from typing import Any

Document = dict[str, Any]

JOIN = {"kind": "join", "clients": [{"id": "10.0.0.9@c9"}]}


def client_id(number: int) -> str:
    """Return the id of the numbered client."""
    return f"10.0.0.{number}@c{number}"


def leave(how: str, *numbers: int) -> Document:
    """Return the change in which the numbered clients end."""
    return {"kind": "leave", "clients": [client_id(number) for number in numbers], "how": how}


def rocketmq_request(
    change: Document,
    client: str = "5.5.0",
    queues: int = 8,
    clients: int = 2,
    rate: float = 25.0,
    lag: float = 0,
    brokers: Sequence[str] = ("broker-a", "broker-b"),
    **more: Any,
) -> Document:
    """Return a group with one topic, its queues spread over the brokers, 20 threads of 50 ms a client.

    ``orderly`` and ``threads`` go to every client; what else is named replaces a field of the request.
    """
    member = {name: more.pop(name) for name in ("orderly", "threads") if name in more}
    return {
        "system": "rocketmq",
        "versions": {"client": client, "broker": "5.5.0"},
        "group": "g",
        "strategy": "AVG",
        "options": {},
        "queues": [
            {"topic": "T", "broker": broker, "queue_id": number, "rate": rate, "lag": lag}
            for broker in brokers
            for number in range(queues // len(brokers))
        ],
        "clients": [{"id": client_id(number + 1), "threads": 20, **member} for number in range(clients)],
        "service_time_s": 0.05,
        "settings": {},
        "change": change,
        "trials": 200,
        "seed": 1,
        **more,
    }


def kafka_request(
    change: Document,
    strategy: str = "range",
    partitions: int = 8,
    members: int = 3,
    rate: float = 25.0,
    lag: float = 0,
    **more: Any,
) -> Document:
    """Return a Kafka group of members c0, c1, ... with one topic, 2 ms a record; uniform means the consumer protocol.

    ``static`` gives every member an instance id; what else is named replaces a field of the request.
    """
    static = more.pop("static", False)
    return {
        "system": "kafka",
        "versions": {"client": "4.4.0", "broker": "4.3.1"},
        "group": "g",
        "protocol": "consumer" if strategy in {"uniform", "range-server"} else "classic",
        "strategy": strategy,
        "partitions": {"t": [{"rate": rate, "lag": lag} for _ in range(partitions)]},
        "members": [
            {"id": f"c{number}", "topics": ["t"], **({"instance_id": f"pod-{number}"} if static else {})}
            for number in range(members)
        ],
        "service_time_s": 0.002,
        "settings": {},
        "change": change,
        "trials": 200,
        "seed": 1,
        **more,
    }


def kafka_leave(how: str, *members: str) -> Document:
    """Return the change in which these members end."""
    return {"kind": "leave", "clients": list(members), "how": how}
