"""Allocations of Kafka groups that a test writes down as ``planner allocate`` is asked."""

from typing import Any

from planner.allocation import kafka
from planner.documents.allocation import read_kafka


def assign(document: dict[str, Any]) -> kafka.Answer:
    """Return the assignor's answer; raise ``BadInputError`` as the command does."""
    return kafka.assign(read_kafka(document))
