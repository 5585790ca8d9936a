"""Second: which processes run, where they are registered, when they rebalance, and which members they see."""
