"""Decisions to plans, one a policy."""
