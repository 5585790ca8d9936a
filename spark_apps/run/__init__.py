"""All stages between observing and reporting, in one session."""
