"""One run on files: what each stage reads and writes below the data folder, for Airflow, Spark and one machine."""
