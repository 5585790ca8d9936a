"""When words come through again after a cut of the network, about which nobody is told.

What is under way as the network goes is not lost: TCP sends it again, each time after twice as long (RFC 6298), and
whatever is sent on the same connection meanwhile waits behind it. So a connection is back up to as long after a cut as
the cut took. A client that waits in vain for an answer closes the connection first (``NetworkClient``,
``request.timeout.ms``; librdkafka ``socket.timeout.ms``), and asks for a new one, whose first packet comes again after
1, 2, 4 ... s, until that attempt, too, has taken too long (``socket.connection.setup.timeout.ms``, KIP-601).
"""

import numpy as np

from planner.simulation.dynamics.kafka.settings import Settings
from planner.simulation.dynamics.kafka.timing import Calibration
from planner.simulation.dynamics.kafka.world import Floats
from planner.simulation.dynamics.spreads import spread

_SENDINGS = 16
_ATTEMPTS = 12
_SYN_S = np.array([0.0, 1.0, 3.0, 7.0, 15.0, 31.0])
"""When the first packet of a new connection goes out, in seconds since the attempt began (Linux)."""
_LONGEST_ATTEMPT_S = 30.0
"""``socket.connection.setup.timeout.max.ms``."""


def through_s(
    sent: Floats,
    cut_s: float,
    settings: Settings,
    calibration: Calibration,
    random: np.random.Generator,
    *,
    is_java: bool,
) -> Floats:
    """Return when what is sent first after the beginning of a cut comes through, in seconds since then; any shape."""
    patience = settings.seconds("request.timeout.ms" if is_java else "socket.timeout.ms")
    again = spread(random, calibration.retransmit_s, sent.shape)[..., None] * (2.0 ** np.arange(_SENDINGS) - 1)
    by_tcp = _first_after(sent[..., None] + again, cut_s)
    closed = sent + patience
    anew = _first_after(_asked_anew(closed, settings, calibration, random), cut_s)
    found: Floats = np.where(by_tcp <= closed, by_tcp, anew)
    return np.where(sent >= cut_s, sent, found)


def _asked_anew(closed: Floats, settings: Settings, calibration: Calibration, random: np.random.Generator) -> Floats:
    """Return along a last axis when a client that closed its connection sends first packets of new ones."""
    begins, packets = closed, []
    for attempt in range(_ATTEMPTS):
        begins = begins + spread(random, calibration.reconnect_s, closed.shape)
        usual = min(settings.seconds("socket.connection.setup.timeout.ms") * 2.0**attempt, _LONGEST_ATTEMPT_S)
        lasts = usual * random.uniform(0.8, 1.2, closed.shape)
        packets.append(np.where(lasts[..., None] > _SYN_S, begins[..., None] + _SYN_S, np.inf))
        begins = begins + lasts
    return np.concatenate(packets, axis=-1)


def _first_after(times: Floats, cut_s: float) -> Floats:
    found: Floats = np.where(times >= cut_s, times, np.inf).min(axis=-1)
    return found
