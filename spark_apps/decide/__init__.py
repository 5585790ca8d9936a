"""Outcomes to decisions, one a policy."""
