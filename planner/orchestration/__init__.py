"""What DAGs share and Airflow itself must find: the one room of the library that knows Airflow.

``follow`` is waited in by the triggerer, ``approval`` asks a person, ``notifying`` notifies people, ``deadline`` of
runs that do not end. ``forms`` and ``examples`` are what the DAGs' forms show, ``tags`` what the DAGs are found by,
``run_notes`` what a run's note says, which ``plugin`` writes. ``retries`` tells Airflow which errors a retry cannot
help, ``present`` which live runs are refused, ``spark`` submits Spark apps, ``connections`` lends Airflow's to
policies. ``checks`` proves that all of it can work on a machine.
"""
