"""Predict what a change in the number of message consumers does, and plan the change that costs least.

The path: observe (``sources``), snapshot (``model``), simulate (``simulation``), decide (``decision``),
plan (``rollout``). ``docs/architecture.md`` has a paragraph for each room.
"""

__version__ = "0.1.0"
