"""Small scenarios."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.backtest.scenario import Prices, Scenario
from planner.model.queues import MessageQueue, TopicPartition


def scenario(queues: int = 4, rates: Sequence[float] = (100.0,) * 30, known: int = 0, **fields: Any) -> Scenario:
    """Return a group whose queues share ``rates`` (messages a second, by minute) evenly; ``known`` are history."""
    system = fields.get("system", "rocketmq")
    named = [TopicPartition("t", n) if system == "kafka" else MessageQueue("t", "", n) for n in range(queues)]
    messages = np.repeat(60.0 * np.array(rates)[:, None] / queues, queues, axis=1)
    defaults: dict[str, Any] = {
        "queues": named, "messages": messages, "interval_s": 60, "history_s": 60 * known, "system": "rocketmq",
        "strategy": "AVG", "capacity": 100.0, "pod_start_s": 30, "lowest": 1, "highest": queues, "start": 2,
        "late_after_s": 60, "prices": Prices(0.25, 1.0), "every_s": 60, "seed": 1,
    }  # fmt: skip
    return Scenario(**{**defaults, **fields})
