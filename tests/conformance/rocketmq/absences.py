"""Members that are away for a while and come back as they were: frozen, or cut off from everybody."""

import time

from tests.conformance.rocketmq.cells import Step
from tests.conformance.rocketmq.changes import Calm, Change, changed, ids
from tests.conformance.rocketmq.group import Document, LiveGroup


def freeze(group: LiveGroup, step: Step, calm: Calm) -> Change:
    """One member's process stands still."""
    before, victim = ids(group), group.random.choice(group.members)
    calm()
    at_ms = time.time() * 1000
    victim.process.freeze()
    time.sleep(step["for_s"])
    back_ms = time.time() * 1000
    victim.process.resume()
    victim.away.append((at_ms, back_ms))
    return changed(group, at_ms, _change("freeze", victim.client_id, at_ms, back_ms), before)


def cut_off(group: LiveGroup, step: Step, calm: Calm) -> Change:
    """One member's packets are dropped, both ways."""
    before, victim = ids(group), group.random.choice(group.members)
    network = group.networks[victim.client_id]
    calm()
    at_ms = time.time() * 1000
    network.cut()
    time.sleep(step["for_s"])
    back_ms = time.time() * 1000
    network.heal()
    victim.away.append((at_ms, back_ms))
    return changed(group, at_ms, _change("partition", victim.client_id, at_ms, back_ms), before)


def _change(kind: str, member: str, at_ms: float, back_ms: float) -> Document:
    return {"kind": kind, "clients": [member], "for_s": round((back_ms - at_ms) / 1000, 3)}
