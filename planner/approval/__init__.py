"""Plans on their way to people and, approved, into a cluster."""
