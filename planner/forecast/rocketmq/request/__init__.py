"""First: what is asked: clients, queues, settings, and what changes; what has no model is refused."""
