"""Lag history and newest raw sample to one snapshot a policy."""
