"""Adapters in: what brokers say, live or from a recording, as the model's types."""
