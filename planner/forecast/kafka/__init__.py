"""The rebalance of Kafka consumers, mechanism by mechanism (``kafka.md`` section 3)."""

from planner.forecast.kafka.answers.answer import forecast_kafka as run_trials
from planner.forecast.kafka.answers.answer import total_kafka as run_totals

__all__ = ["run_totals", "run_trials"]
