"""An example of every kind of migration, as the form of the migration DAG shows it."""

import json
from typing import Any, Final

EXAMPLES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "update": (
        "another image, environment or annotation",
        {"kind": "update", "change": {"containers": [{"container": "app", "image": "shop:2"}]}},
    ),
    "strategy": (
        "another RocketMQ allocation strategy",
        {
            "kind": "strategy",
            "to": "CONSISTENT_HASH",
            "green": "shop-green",
            "change": {"containers": [{"container": "app", "env": [{"name": "STRATEGY", "value": "CONSISTENT_HASH"}]}]},
        },
    ),
    "rename": (
        "another consumer group",
        {
            "kind": "rename",
            "to": "shop-2",
            "green": "shop-green",
            "change": {"containers": [{"container": "app", "env": [{"name": "GROUP", "value": "shop-2"}]}]},
        },
    ),
    "subscription": (
        "other topics or tags",
        {
            "kind": "subscription",
            "to": {"orders": "paid || sent"},
            "green": "shop-green",
            "change": {"containers": [{"container": "app", "env": [{"name": "TAGS", "value": "paid || sent"}]}]},
        },
    ),
    "relocate": (
        "other nodes or another machine room",
        {"kind": "relocate", "green": "shop-green", "change": {"nodeLabels": [{"name": "zone", "value": "b"}]}},
    ),
    "cluster": (
        "another cluster",
        {
            "kind": "cluster",
            "to": "rocketmq-new",
            "green": "shop-green",
            "change": {"containers": [{"container": "app", "env": [{"name": "NAMESRV", "value": "new:9876"}]}]},
        },
    ),
    "reset": ("other offsets, by time", {"kind": "reset", "to": "2026-11-21T10:00:00Z"}),
    "expand": ("more queues or partitions", {"kind": "expand", "topic": "orders", "queues": 12}),
    "shrink": ("fewer queues (RocketMQ)", {"kind": "shrink", "topic": "orders", "queues": 4}),
    "assignor": (
        "another Kafka assignor",
        {"kind": "assignor", "to": "cooperative-sticky", "variable": {"container": "app", "name": "ASSIGNOR"}},
    ),
    "consumerProtocol": (
        "Kafka's consumer protocol (KIP-848)",
        {
            "kind": "consumerProtocol",
            "change": {"containers": [{"container": "app", "env": [{"name": "PROTOCOL", "value": "consumer"}]}]},
        },
    ),
}
"""Kind -> what it is for, and a request."""


def examples_in_markdown() -> str:
    """Return all examples as Markdown.

    They are quoted text: of code that takes several lines Airflow's forms hide half of each line behind the next.
    """
    return "\n\n".join(f"{words}:\n\n> {json.dumps(request)}" for words, request in EXAMPLES.values())
