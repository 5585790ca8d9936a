"""What the policy wants, as plain figures."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Objective:
    """Bounds of a decision.

    ``lowest`` and ``highest`` bound the count. No consumer may be used above ``max_utilisation`` (share of its
    capacity). The backlog must be gone within ``backlog_gone_s``; by then, too, no new message may wait longer than
    ``oldest_message_s``. The two times are ``None`` where the policy does not ask. Data older than ``max_age_s``
    or less complete than ``min_completeness`` (0 to 1) gives no decision. ``sets_autoscaler``: a plan may set the
    autoscaler of the Deployment, so that it undoes nothing. The group must not have changed for ``quiet_s``; ``None``
    asks for no such rest.
    """

    lowest: int
    highest: int
    max_utilisation: float
    oldest_message_s: float | None
    backlog_gone_s: float | None
    max_age_s: float
    min_completeness: float
    sets_autoscaler: bool = False
    quiet_s: float | None = None
