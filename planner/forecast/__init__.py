"""What one change of a consumer group does: pause, duplicates, burst and settle, sampled over many trials."""

from planner.forecast.answers import ForecastRequest, run_totals, run_trials

__all__ = ["ForecastRequest", "run_totals", "run_trials"]
