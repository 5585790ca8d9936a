"""Which count, and why not the others; hold is an answer."""
