"""From a watch to one answer: when it is clear, what it costs, what nearly did, and the next command. Pure."""
