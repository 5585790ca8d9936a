"""Changes done to living groups in every run of the tests, each held against the forecast of its own request."""
