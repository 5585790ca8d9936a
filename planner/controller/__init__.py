"""The controller: one process in the cluster that carries approved plans out, so that no laptop and no DAG has to stay.

``settings`` its options, ``main`` its tasks and their end, ``watch`` (kopf) receives changes, ``agenda`` has the plan
that is due, ``worker`` reconciles plans by the one engine, ``election`` lets only one of several replicas do so,
``auto_approval`` approves by a policy's criteria, ``metrics``, ``health`` and ``logs`` report on it.
"""
