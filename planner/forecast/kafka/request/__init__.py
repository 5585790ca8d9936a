"""First: what is asked: members, partitions, settings, and what changes; what has no model is refused."""
