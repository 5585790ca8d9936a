"""RocketMQ transitions: which ones, and how they are done to real groups."""
