"""Scaling policies that a backtest plays: the planner's own, those of other autoscalers, and the offline optimum."""
