"""What one change of a consumer group does: pause, duplicates, burst and settle, sampled over many trials."""

from planner.forecast.answers import Forecasts, forecast, forecast_all

__all__ = ["Forecasts", "forecast", "forecast_all"]
