"""Whether Spark runs our apps: one row, made by an executor."""
