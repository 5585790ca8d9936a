"""Look at many groups several times: what ``planner doctor`` draws its pictures from.

A group that fails at one look keeps its other looks; only one that was never read is named as unread.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from planner.errors import OutOfReachError, PlannerError, UnknownNameError
from planner.model.samples import GroupSample
from planner.sources.live import SAMPLE_EVERY_S
from planner.sources.rocketmq import RocketMQAdmin, observe_group

LEAST_LOOKS: Final = 2
"""Rates need two looks."""

_AT_ONCE: Final = 4
"""Groups read at the same time; each asks all brokers at once already."""

_OWN_GROUPS: Final = frozenset(
    {
        "CID_ONSAPI_OWNER",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_PULL",
        "CID_ONS-HTTP-PROXY",
        "CID_SYS_RMQ_TRANS",
        "CLIENT_INNER_PRODUCER",
        "DEFAULT_CONSUMER",
        "FILTERSRV_CONSUMER",
        "SCHEDULE_CONSUMER",
        "SELF_TEST_C_GROUP",
        "TOOLS_CONSUMER",
        "__MONITOR_CONSUMER",
    }
)
_OWN_PREFIX: Final = "CID_RMQ_SYS_"
"""Groups of RocketMQ itself (``MixAll#isPredefinedGroup``)."""

Tell = Callable[[str], None]
"""Show one line of progress."""

Look = Callable[[Sequence[str], datetime], Iterable[tuple[str, GroupSample | PlannerError]]]
"""Read these groups once; each comes back with its sample, or with the reason why there is none."""


@dataclass
class Survey:
    """The samples of each group in time order, and the groups that could not be read, with the last reason.

    ``unused`` are groups that brokers list in their settings only: no members, no commits.
    """

    samples: dict[str, list[GroupSample]] = field(default_factory=dict)
    failures: dict[str, PlannerError] = field(default_factory=dict)
    unused: set[str] = field(default_factory=set)

    @property
    def unread(self) -> dict[str, PlannerError]:
        """The groups without any sample that are not just unused."""
        return {group: error for group, error in self.failures.items() if group not in self.samples}


def group_names(admin: RocketMQAdmin, cluster: str | None) -> tuple[str, ...]:
    """Return the groups that brokers have settings for, sorted, RocketMQ's own left out.

    Asks every broker that answers; raises ``OutOfReachError`` when none does, ``UnknownNameError`` for a cluster that
    is not there.
    """
    info = admin.cluster_info()
    if cluster is not None and cluster not in info.clusters:
        known = ", ".join(info.clusters) or "none"
        raise UnknownNameError(f"the name server knows no cluster {cluster}, but {known}: correct the name")
    names: set[str] = set()
    failures: list[OutOfReachError] = []
    brokers = [broker for broker in info.brokers if cluster in (None, broker.cluster)]
    for broker in brokers:
        try:
            names |= {config.group for config in admin.group_configs(broker.address)}
        except OutOfReachError as error:
            failures.append(error)
    if len(failures) == len(brokers):
        raise (
            failures[0]
            if failures
            else OutOfReachError(
                "the name server knows no broker at all: see whether the brokers are up and registered"
            )
        )
    return tuple(sorted(name for name in names if name not in _OWN_GROUPS and not name.startswith(_OWN_PREFIX)))


def rocketmq_look(admin: RocketMQAdmin, cluster: str | None) -> Look:
    """Return the way to look at groups of a RocketMQ installation."""

    def one(group: str, at: datetime) -> tuple[str, GroupSample | PlannerError]:
        try:
            return group, observe_group(admin, cluster=cluster, group=group, topics=None, at=at)
        except PlannerError as error:
            return group, error

    def look(groups: Sequence[str], at: datetime) -> Iterator[tuple[str, GroupSample | PlannerError]]:
        with ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="survey") as pool:
            yield from pool.map(lambda group: one(group, at), groups)

    return look


def survey(look: Look, groups: Sequence[str], watch_s: float, tell: Tell, *, named: bool) -> Survey:
    """Return what looks at these groups showed over ``watch_s`` seconds, two at least.

    ``named`` says that the groups were asked for by name: then one that does not exist is a failure, else it is
    merely unused.
    """
    found = Survey()
    started = time.monotonic()
    number = 0
    wanted = list(groups)
    while number < LEAST_LOOKS or time.monotonic() - started < watch_s:
        _wait(started + min(number * SAMPLE_EVERY_S, watch_s), tell, wanted, watch_s)
        for done, (group, said) in enumerate(look(wanted, datetime.now(UTC)), start=1):
            tell(f"look {number + 1}: {done} of {len(wanted)} groups read")
            if isinstance(said, GroupSample):
                found.samples.setdefault(group, []).append(said)
            elif isinstance(said, UnknownNameError) and not named and group not in found.samples:
                found.unused.add(group)
            else:
                found.failures[group] = said
        wanted = [group for group in wanted if group not in found.unused]
        number += 1
    return found


def _wait(until: float, tell: Tell, groups: Sequence[str], watch_s: float) -> None:
    left = until - time.monotonic()
    if left > 0:
        tell(f"watching {len(groups)} groups for {watch_s:.0f} s, so that rates can be told")
        time.sleep(left)
