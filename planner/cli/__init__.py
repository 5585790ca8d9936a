"""The ``planner`` command: one module a command, each a thin shell around the pipeline."""
