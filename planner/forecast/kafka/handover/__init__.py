"""Third: the rebalances, who owns which partition from when to when, and from which offset it is read."""
