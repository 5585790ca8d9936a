"""Third: which process owns which queue from when to when, from which offset, and what comes of it."""
