"""Whether what was seen after a rollout is what the plan forecast."""
