"""What DAGs share and Airflow itself must find: the one room of the library that knows Airflow.

``follow`` is waited in by the triggerer, ``approval`` asks a person, ``notifying`` notifies people, ``forms`` and
``examples`` are what the DAGs' forms show, ``retries`` tells Airflow which errors a retry cannot help, ``spark``
submits Spark apps, ``connections`` lends Airflow's to policies. ``checks`` proves that all of it can work on a machine.
"""
