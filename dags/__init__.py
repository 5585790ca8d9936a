"""Airflow DAGs: one file each, a table of contents and nothing else."""
