"""The engine's hands: the ports of ``planner.execution`` on a real API server, through the official client.

Needs the extra ``kubernetes``. ``api`` (every request that writes), ``bodies`` (what is sent), ``plans``, ``world``,
``leases``, ``events`` (the ports), ``groups`` (a group as the engine sees it), ``watches`` (what its observations add
up to), ``offsets`` (the steps that write to brokers), ``rights`` (what an executor may do), ``clock`` (the server's
time), ``drive`` (reconciles until the end).
"""

import planner.sources.kubernetes  # noqa: F401  says how to install the extra where it is missing
