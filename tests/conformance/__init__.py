"""Forecasts against real brokers: real groups, one change each, every delivery logged, and what the forecast said.

``make calibrate`` collects, ``make conformance-report`` compares; see docs/conformance.md.
"""
