"""Transitions of real Kafka groups, many groups at once; see docs/conformance.md."""
