"""The rebalance of Kafka consumers, mechanism by mechanism (``kafka.md`` section 3)."""

from planner.forecast.kafka.answers.answer import forecast_kafka

__all__ = ["forecast_kafka"]
