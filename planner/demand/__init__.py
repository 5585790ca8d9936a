"""Possible futures of a group's load, from what it was."""
