"""When words come through again after a cut of the network, of which no peer is notified.

What is under way as the network goes is not lost: TCP retransmits it, each time after twice as long (RFC 6298), and
whatever is sent on the same connection meanwhile waits behind it. So a connection is back up to as long after a cut as
the cut took. A client that waits in vain for an answer closes the connection first (``NetworkClient``,
``request.timeout.ms``; librdkafka ``socket.timeout.ms``) and opens another one, for which it tries again and again.
"""

import numpy as np

from planner.forecast.common.delay_ranges import draw_evenly
from planner.forecast.kafka.membership.scenario import Floats
from planner.forecast.kafka.request.settings import Settings
from planner.forecast.kafka.timing import Calibration

_SENDINGS = 16


def patience_s(settings: Settings, *, is_java: bool) -> float:
    """Return how long a client waits for an answer before it closes the connection."""
    return settings.seconds("request.timeout.ms" if is_java else "socket.timeout.ms")


def arrival_s(
    sent: Floats, cut_s: float, closed: Floats, opens: Floats, calibration: Calibration, random: np.random.Generator
) -> Floats:
    """Return when what is sent first after the beginning of a cut comes through, in seconds since then; any shape.

    ``closed``: when the client gives the connection up; ``opens``: how long after the cut it has another one then.
    """
    retries = draw_evenly(random, calibration.retransmit_s, sent.shape)[..., None] * (2.0 ** np.arange(_SENDINGS) - 1)
    times = sent[..., None] + retries
    by_tcp = np.where(times >= cut_s, times, np.inf).min(axis=-1)
    retried_at = np.where(closed < cut_s, cut_s + opens, closed)
    through = np.where(by_tcp <= closed, by_tcp, retried_at)
    return np.where(sent >= cut_s, sent, through)
