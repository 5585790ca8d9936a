"""The rebalance of RocketMQ clients, mechanism by mechanism (``rocketmq.md`` sections 3 and 4)."""

from planner.forecast.rocketmq.answers.answer import forecast_rocketmq as run_trials
from planner.forecast.rocketmq.answers.answer import total_rocketmq as run_totals

__all__ = ["run_totals", "run_trials"]
