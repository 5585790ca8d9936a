"""The controller: one process in the cluster that carries approved plans out, so that no laptop and no DAG has to stay.

``settings`` what it is told, ``main`` its parts and their end, ``watch`` (kopf) hears of changes, ``agenda`` says which
plan's turn it is, ``worker`` has turns of the one engine, ``election`` lets only one of several replicas do so,
``consent`` approves by a policy's criteria, ``metrics``, ``health`` and ``logs`` tell how it goes.
"""
