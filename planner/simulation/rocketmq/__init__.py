"""RocketMQ groups: every member allocates its own queues, by a strategy that counts positions or goes by names."""
