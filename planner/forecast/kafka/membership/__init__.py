"""Second: the members' processes: when each joins, stops, polls, and is missed by the coordinator."""
