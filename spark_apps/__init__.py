"""Spark apps: one folder each. They fan the planner's pure functions out over groups and candidates."""
