"""Whether a change of names and places leaves every answer as it was: ``make same``."""
