"""Lag history to what the load of every group may be, and how such forecasts did."""
