"""What would happen with n consumers: owners, load, moved queues, backlog. Pure and deterministic."""
