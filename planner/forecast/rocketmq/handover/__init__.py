"""Third: who owns which queue from when to when, from which offset it is read, and what comes of it."""
