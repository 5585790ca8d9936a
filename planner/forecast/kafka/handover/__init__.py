"""Third: the rebalances, which process owns which partition from when to when, and from which offset it is read."""
