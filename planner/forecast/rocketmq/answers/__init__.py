"""Last: the trials as the answer has them: figures, causes, timeline, warnings."""
