"""Lag history: what happened to every queue between two samples. Pure; the Spark app says the same in columns."""
