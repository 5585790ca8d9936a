"""The parts of a client id, ``host@instance`` or ``host@instance@unit``, that strategies choose clients by."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planner.allocation.strategy import NOBODY, Holdings, Owners, Strategy
from planner.model.queues import MessageQueue


def host_of(client: str) -> str:
    """Return the part before the first ``@``, the client's ``clientIP``; the whole id when there is none."""
    return client.partition("@")[0]


def stable_name(client: str) -> str:
    """Return the part between the first and the second ``@``, the client's ``instanceName``.

    The whole id when there is no ``@``. The name stays over restarts when the application sets it
    (``setInstanceName``); the default, process id and start time, does not.
    """
    host, separator, rest = client.partition("@")
    return rest.partition("@")[0] if separator else host


def owners_among(
    inner: Strategy,
    queues: Sequence[MessageQueue],
    picks: NDArray[np.intp],
    clients: Sequence[str],
    slots: NDArray[np.intp],
) -> Owners:
    """Return what ``inner`` gives the clients at ``slots`` of the queues at ``picks``, as indexes of all clients."""
    local = inner.owners([queues[pick] for pick in picks], [clients[slot] for slot in slots])
    return np.where(local == NOBODY, NOBODY, np.append(slots, NOBODY)[local])


def holdings_in_order(owners: Owners, *groups: NDArray[np.intp]) -> Holdings:
    """Return single ownership as pairs, each client's queues part by part."""
    order = np.concatenate(groups)
    order = order[owners[order] != NOBODY]
    return Holdings(owners[order], order)
