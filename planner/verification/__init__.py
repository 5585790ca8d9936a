"""Whether what was observed after a rollout is what the plan forecast."""
