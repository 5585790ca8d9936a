"""Read many groups several times: what ``planner doctor`` takes its evidence from.

A group that fails at one reading keeps its other samples; one that failed at the last is named, as its samples are
older.
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
from planner.sources.kept_samples import add
from planner.sources.live import LEAST_READINGS, SAMPLE_EVERY_S, Pace

ANY_GROUP: Final = "*"
"""Stands for groups whose names are not known, as a broker did not list its own."""

ShowProgress = Callable[[str], None]
"""Show one line of progress."""

ReadGroups = Callable[[Sequence[str], datetime], Iterator[tuple[str, GroupSample | PlannerError]]]
"""Read these groups once; each comes back with its sample, or with the reason why there is none."""


@dataclass
class Survey:
    """The samples of each group in time order, and the groups that failed at the last reading, with the reason.

    ``unused`` are groups that brokers list in their settings only: no members, no commits. ``pace`` knows how far apart
    the readings lie. ``problems`` say what else could not be read, each with its group, or ``ANY_GROUP``.
    """

    samples: dict[str, list[GroupSample]] = field(default_factory=dict)
    failures: dict[str, PlannerError] = field(default_factory=dict)
    unused: set[str] = field(default_factory=set)
    pace: Pace = field(default_factory=Pace)
    problems: list[tuple[str, str]] = field(default_factory=list)

    def note(self, group: str, answer: GroupSample | PlannerError, *, named: bool) -> None:
        """Add what the reading of a group came to; ``named`` as in ``survey``."""
        if isinstance(answer, GroupSample):
            add(self.samples.setdefault(group, []), answer)
            self.failures.pop(group, None)
        elif isinstance(answer, UnknownNameError) and not named and group not in self.samples:
            self.unused.add(group)
        else:
            self.failures[group] = answer


@dataclass(frozen=True, slots=True)
class OpenInstallation:
    """An installation that is open for readings: its groups, and a function that reads them.

    ``problems`` say which brokers did not list theirs, so that groups may be missing.
    """

    groups: tuple[str, ...]
    read: ReadGroups
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
    proxies: Sequence[str] = (),
) -> Iterator[OpenInstallation]:
    """Hold the connections to a RocketMQ installation; no ``groups`` means all that its brokers know.

    ``account`` is a file with ``accessKey`` and ``secretKey``, ``ca_file`` holds the authorities to trust, and means
    TLS. ``proxies`` are the remoting ports of proxies, which list gRPC clients.

    Raises ``OutOfReachError`` when no server answers, ``UnknownNameError`` for a cluster that does not exist,
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
    with RocketMQAdmin(name_servers, credentials=credentials, tls=tls, proxies=proxies) as admin:
        listed = GroupList(tuple(dict.fromkeys(groups)), ()) if groups else list_groups(admin, cluster)
        _check(listed.names, listed.problems, name_servers)
        yield OpenInstallation(
            listed.names,
            lambda names, at: observe_groups(admin, groups=names, cluster=cluster, at=at),
            listed.problems,
        )


@contextmanager
def open_kafka(bootstrap: str, groups: Sequence[str], *, account: Path | None = None) -> Iterator[OpenInstallation]:
    """Hold the connections to a Kafka cluster as ``open_rocketmq`` does; streams and other groups are left out.

    ``account`` is a file of client properties (SASL, TLS).
    """
    from planner.sources.kafka import KafkaAdmin, KafkaSettings, observe_groups  # noqa: PLC0415  needs the kafka extra

    settings = KafkaSettings.read(account) if account else None
    with KafkaAdmin([server.strip() for server in bootstrap.split(",") if server.strip()], settings=settings) as admin:
        listed = None if groups else admin.list_groups()
        known = (listing.group for listing in listed.groups if listing.is_consumer_group) if listed else groups
        names, problems = tuple(dict.fromkeys(known)), listed.problems if listed else ()
        _check(names, problems, bootstrap)

        def read(asked: Sequence[str], at: datetime) -> Iterator[tuple[str, GroupSample | PlannerError]]:
            yield from observe_groups(admin, cluster=None, groups=dict.fromkeys(asked), at=at).items()

        yield OpenInstallation(names, read, problems)


def _check(names: Sequence[str], problems: Sequence[str], where: str) -> None:
    if not names and problems:
        raise OutOfReachError(f"{where} reports no consumer group, and not all of its brokers answered: {problems[0]}")
    if not names:
        raise BadInputError(f"{where} knows no consumer group yet: start a consumer, or check address and cluster")


def survey(installation: OpenInstallation, watch_s: float, show: ShowProgress, *, named: bool) -> Survey:
    """Return what readings of all groups showed over ``watch_s`` seconds, two at least.

    ``named`` says that the groups were asked for by name: then one that does not exist is a failure, else it is
    merely unused.
    """
    result = Survey(problems=[(ANY_GROUP, problem) for problem in installation.problems])
    started = due = time.monotonic()
    groups: Sequence[str] = installation.groups
    number = 0
    while number < LEAST_READINGS or due - started < watch_s:  # slow readings must not cut the watch short
        if number:
            due = max(min(due + SAMPLE_EVERY_S, started + max(watch_s, 1.0)), time.monotonic())
            _wait(due, show, len(groups), watch_s)
        number += 1
        _read_once(result, installation, groups, number, show, named=named)
        groups = [group for group in groups if group not in result.unused]
    return result


def _read_once(
    result: Survey,
    installation: OpenInstallation,
    groups: Sequence[str],
    number: int,
    show: ShowProgress,
    *,
    named: bool,
) -> None:
    """Read these groups once. When no server answers at all, earlier samples are kept, and marked as older.

    Raises what keeps the first reading from being done.
    """
    began, answered = time.monotonic(), set[str]()
    try:
        for group, answer in installation.read(groups, datetime.now(UTC)):
            answered.add(group)
            show(f"sample {number}: {len(answered)} of {len(groups)} groups read")
            result.note(group, answer, named=named)
    except (OutOfReachError, UnknownNameError) as error:
        if not result.samples:
            raise
        result.failures |= {group: error for group in groups if group not in answered}
    if not result.failures.keys() >= set(groups):
        result.pace.note(time.monotonic() - began)


def _wait(until: float, show: ShowProgress, groups: int, watch_s: float) -> None:
    left = until - time.monotonic()
    if left > 0:
        show(
            f"watching {groups} {'group' if groups == 1 else 'groups'} for {watch_s:.0f} s, so that rates can be "
            "measured"
        )
        time.sleep(left)
