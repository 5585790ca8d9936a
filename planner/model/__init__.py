"""The nouns: queues, routes, members, samples, intervals, snapshots. Imports nothing of ours but ``errors``."""
