"""Groups on real brokers whose members come back with other topics or tags, one by one, beside their forecasts.

``python -m tests.conformance.subscription`` runs every case and prints a row for each; docs/evidence.md has
one run of them.
"""
