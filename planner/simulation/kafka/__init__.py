"""Kafka groups: the leader or the coordinator assigns all partitions, by an assignor that the group has agreed on."""
