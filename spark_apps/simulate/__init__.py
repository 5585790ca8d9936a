"""Snapshots to outcomes: one row for each policy, strategy and count."""
