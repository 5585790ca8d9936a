"""Files: written whole or not at all, laid out by group and time."""
