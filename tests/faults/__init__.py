"""Faults on a real API server: executors that are killed, servers that go away, worlds that change. ``make faults``.

``place`` (a namespace with consumers), ``kinds`` (plans), ``group`` (the stand-in for a consumer group), ``executor``
(``planner`` as a process that a fault hits), ``observer`` (an independent watch), ``judge`` (what must hold). On these
build ``kills``; ``scenarios`` with ``running``, ``injected`` and ``proxy``; ``drifts`` with ``drift_case`` and the
changes of world, plan and group.
"""
