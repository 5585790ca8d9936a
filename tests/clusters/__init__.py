"""Real brokers for tests: found, started on free loopback ports, and gone when their owner is gone."""
