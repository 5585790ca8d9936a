"""Look at many groups several times: what ``planner doctor`` draws its pictures from.

A group that fails at one look keeps its other looks; one that failed at the last is named, as what is told is older.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from planner.errors import BadInputError, OutOfReachError, PlannerError, UnknownNameError
from planner.model.samples import GroupSample
from planner.sources.live import LEAST_LOOKS, SAMPLE_EVERY_S, Pace
from planner.sources.looks import add

ANY_GROUP: Final = "*"
"""Stands for groups that nobody can name, as a broker did not list its own."""

Tell = Callable[[str], None]
"""Show one line of progress."""

Look = Callable[[Sequence[str], datetime], Iterator[tuple[str, GroupSample | PlannerError]]]
"""Read these groups once; each comes back with its sample, or with the reason why there is none."""


@dataclass
class Survey:
    """The samples of each group in time order, and the groups that could not be read at the last look, with the reason.

    ``unused`` are groups that brokers list in their settings only: no members, no commits. ``pace`` knows how far apart
    the looks lie. ``problems`` say what else could not be read, each with its group, or ``ANY_GROUP``.
    """

    samples: dict[str, list[GroupSample]] = field(default_factory=dict)
    failures: dict[str, PlannerError] = field(default_factory=dict)
    unused: set[str] = field(default_factory=set)
    pace: Pace = field(default_factory=Pace)
    problems: list[tuple[str, str]] = field(default_factory=list)

    def note(self, group: str, said: GroupSample | PlannerError, *, named: bool) -> None:
        """Add what a look at a group came to; ``named`` as in ``survey``."""
        if isinstance(said, GroupSample):
            add(self.samples.setdefault(group, []), said)
            self.failures.pop(group, None)
        elif isinstance(said, UnknownNameError) and not named and group not in self.samples:
            self.unused.add(group)
        else:
            self.failures[group] = said


@dataclass(frozen=True, slots=True)
class Ground:
    """An installation that is open for looks: the groups that there are, and the way to read them.

    ``problems`` say which brokers did not list theirs, so that groups may be missing.
    """

    groups: tuple[str, ...]
    look: Look
    problems: tuple[str, ...] = ()


@contextmanager
def open_rocketmq(
    name_servers: str,
    cluster: str | None,
    groups: Sequence[str],
    *,
    account: Path | None = None,
    uses_tls: bool = False,
    ca_file: Path | None = None,
) -> Iterator[Ground]:
    """Hold the connections to a RocketMQ installation; no ``groups`` means all that its brokers know.

    ``account`` is a file with ``accessKey`` and ``secretKey``, ``ca_file`` holds whom to trust, and means TLS.

    Raises ``OutOfReachError`` when nobody answers, ``UnknownNameError`` for a cluster that is not there,
    ``BadInputError`` where there is no group at all.
    """
    from planner.sources.rocketmq import (  # noqa: PLC0415  only this system
        Credentials,
        GroupList,
        RocketMQAdmin,
        Tls,
        list_groups,
        observe_groups,
    )

    credentials = Credentials.read(account) if account else None
    tls = Tls(ca_file) if uses_tls or ca_file else None
    with RocketMQAdmin(name_servers, credentials=credentials, tls=tls) as admin:
        listed = GroupList(tuple(dict.fromkeys(groups)), ()) if groups else list_groups(admin, cluster)
        _check(listed.names, listed.problems, name_servers)
        yield Ground(
            listed.names,
            lambda wanted, at: observe_groups(admin, groups=wanted, cluster=cluster, at=at),
            listed.problems,
        )


@contextmanager
def open_kafka(bootstrap: str, groups: Sequence[str], *, account: Path | None = None) -> Iterator[Ground]:
    """Hold the connections to a Kafka cluster as ``open_rocketmq`` does; share and other groups are left out.

    ``account`` is a file of client properties (SASL, TLS).
    """
    from planner.sources.kafka import KafkaAdmin, KafkaSettings, observe_groups  # noqa: PLC0415  needs the kafka extra

    settings = KafkaSettings.read(account) if account else None
    with KafkaAdmin([part.strip() for part in bootstrap.split(",") if part.strip()], settings=settings) as admin:
        listed = None if groups else admin.list_groups()
        there = (one.group for one in listed.groups if one.is_consumer_group) if listed else groups
        names, problems = tuple(dict.fromkeys(there)), listed.problems if listed else ()
        _check(names, problems, bootstrap)

        def look(wanted: Sequence[str], at: datetime) -> Iterator[tuple[str, GroupSample | PlannerError]]:
            yield from observe_groups(admin, cluster=None, groups=dict.fromkeys(wanted), at=at).items()

        yield Ground(names, look, problems)


def _check(names: Sequence[str], problems: Sequence[str], where: str) -> None:
    if not names and problems:
        raise OutOfReachError(f"{where} tells of no consumer group, and not all of its brokers answered: {problems[0]}")
    if not names:
        raise BadInputError(f"{where} knows no consumer group yet: start a consumer, or check address and cluster")


def survey(ground: Ground, watch_s: float, tell: Tell, *, named: bool) -> Survey:
    """Return what looks at all groups showed over ``watch_s`` seconds, two at least.

    ``named`` says that the groups were asked for by name: then one that does not exist is a failure, else it is
    merely unused.
    """
    found = Survey(problems=[(ANY_GROUP, problem) for problem in ground.problems])
    started = due = time.monotonic()
    wanted: Sequence[str] = ground.groups
    number = 0
    while number < LEAST_LOOKS or due - started < watch_s:  # slow looks must not cut the watch short
        if number:
            due = max(min(due + SAMPLE_EVERY_S, started + max(watch_s, 1.0)), time.monotonic())
            _wait(due, tell, len(wanted), watch_s)
        number += 1
        _look(found, ground, wanted, number, tell, named=named)
        wanted = [group for group in wanted if group not in found.unused]
    return found


def _look(found: Survey, ground: Ground, wanted: Sequence[str], number: int, tell: Tell, *, named: bool) -> None:
    """Look at these groups once. When nobody answers at all, what earlier looks showed is kept, and marked as older.

    Raises what keeps the first look from being taken.
    """
    began, told = time.monotonic(), set[str]()
    try:
        for group, said in ground.look(wanted, datetime.now(UTC)):
            told.add(group)
            tell(f"look {number}: {len(told)} of {len(wanted)} groups read")
            found.note(group, said, named=named)
    except (OutOfReachError, UnknownNameError) as error:
        if not found.samples:
            raise
        found.failures |= {group: error for group in wanted if group not in told}
    if not found.failures.keys() >= set(wanted):
        found.pace.note(time.monotonic() - began)


def _wait(until: float, tell: Tell, groups: int, watch_s: float) -> None:
    left = until - time.monotonic()
    if left > 0:
        tell(f"watching {groups} {'group' if groups == 1 else 'groups'} for {watch_s:.0f} s, so that rates can be told")
        time.sleep(left)
