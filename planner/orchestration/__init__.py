"""What DAGs share and Airflow itself must find: the one room of the library that knows Airflow.

``follow`` is waited in by the triggerer, ``retries`` tells Airflow which errors a retry cannot help.
"""
