"""What metrics have of the time that no run has seen, landed for the lag history."""

import logging
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from planner import pipeline
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import OutOfReachError, PlannerError
from planner.sources.past import FIRST_TIME, read_past
from planner.storage.files import write_atomically
from planner.storage.layout import is_time_name, metrics_mark, time_name, time_of_name
from planner.text.printable import one_line

log = logging.getLogger(__name__)


def land_pasts(policies: Sequence[ConsumerScalingPolicy], data: Path, until: datetime) -> None:
    """Land what metrics have of the time since they were last read; a server that fails costs no run.

    What it did not report, the next run asks for again. One that does not answer costs a minute. So that is logged
    once, and it is not asked for the other groups.
    """
    away: set[object] = set()
    for policy in policies:
        group, server = policy.spec.source.group, _server_of(policy)
        if server in away:
            continue
        try:
            past = read_past(policy, last_read(policy, data, until), until)
        except PlannerError as error:
            # What is below this error, the server has answered: another group may be better off.
            if type(error) is OutOfReachError:
                away.add(server)
            log.warning("past of group %s was not read: %s", one_line(group), error)
        else:
            if past is not None:
                pipeline.land_metrics(data, past)
                write_atomically(metrics_read_mark(policy, data), time_name(until))


def _server_of(policy: ConsumerScalingPolicy) -> object:
    """Return what decides whether a metrics server can be reached at all."""
    server = policy.spec.source.prometheus
    return server and (server.url, server.ca_file)


def last_read(policy: ConsumerScalingPolicy, data: Path, until: datetime) -> datetime:
    """Return up to when the group's metrics were read, at most two weeks ago."""
    mark = metrics_read_mark(policy, data)
    name = mark.read_text(encoding="utf-8") if mark.exists() else ""
    first = until - FIRST_TIME
    return max(first, time_of_name(name)) if is_time_name(name) and name < time_name(until) else first


def metrics_read_mark(policy: ConsumerScalingPolicy, data: Path) -> Path:
    source = policy.spec.source
    return metrics_mark(data, source.system, source.cluster, source.group)
