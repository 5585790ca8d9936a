"""Who may drive the plans of one group: the rules of its lease, as pure functions of the lease and the time.

One lease for each group and not for each plan: two plans of one group then exclude each other too, whichever executor
drives them. The holder is executor and plan together, so that one executor does not drive two plans of a group at once
either. The lease keeps executors apart in time; that a late request does no harm is the business of resource versions.
"""

import hashlib
from datetime import datetime, timedelta
from typing import Final

from planner.execution.ports import Lease
from planner.rollout.plan import GroupRef

DURATION_S: Final = 30
"""A lease that was not renewed for so long is free. Longer than any one request may take (10 s)."""
RENEW_AFTER: Final = timedelta(seconds=10)
"""How old a lease may get before its holder renews it."""
MARGIN: Final = timedelta(seconds=12)
"""No effect is begun with less time left: a request takes up to 10 s, and clocks differ."""


def lease_name(group: GroupRef) -> str:
    """Return the name of the group's lease; group names may have signs that Kubernetes names may not."""
    text = "\n".join((group.system, group.cluster, group.group))
    return f"consumerplanner-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def holder_name(executor: str, plan: str) -> str:
    """Return the holder of the lease: executor and plan."""
    return f"{executor} for {plan}"


def is_free(lease: Lease | None, holder: str, now: datetime) -> bool:
    """True when ``holder`` may take or renew the lease.

    One that was renewed far in the future is free too: its holder's clock is wrong and could keep all out for hours.
    """
    if lease is None or lease.holder is None or lease.holder == holder:
        return True
    return abs(now - lease.renewed_at) >= timedelta(seconds=lease.duration_s)


def needs_renewal(lease: Lease, holder: str, now: datetime) -> bool:
    """True when the lease must be written before anything else; one from the future is as good as none."""
    return lease.holder != holder or not timedelta() <= now - lease.renewed_at < RENEW_AFTER


def may_act(lease: Lease, holder: str, now: datetime) -> bool:
    """True while there is time enough to begin one more effect."""
    return lease.holder == holder and now + MARGIN < lease.renewed_at + timedelta(seconds=lease.duration_s)
