"""Kafka's own assignor classes, asked directly, and our answers held against theirs."""
