"""The rebalance of RocketMQ clients, mechanism by mechanism (``rocketmq.md`` sections 3 and 4)."""

from planner.forecast.rocketmq.answers.answer import forecast_rocketmq, total_rocketmq

__all__ = ["forecast_rocketmq", "total_rocketmq"]
