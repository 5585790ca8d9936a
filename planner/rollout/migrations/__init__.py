"""Migrations: changes that a person asks for. One module a kind; each returns its steps and what must be true.

Load decides nothing here. Each kind takes the cheapest of its safe procedures, and refuses by name what is not safe.
"""
