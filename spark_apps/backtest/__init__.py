"""Lag history to what every group would have cost under other policies: one row for each run."""
