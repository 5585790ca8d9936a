"""A run's first stage: it reads the policies, keeps them for the others, and lands samples of every policy's group.

A group that cannot be read is a sentence among the run's problems, which ``conclude`` raises once all others are done.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path

from planner import pipeline
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import BadInputError, OutOfReachError, PlannerError
from planner.isolation import attempt
from planner.model.samples import GroupSample
from planner.policies.cluster_reports import report_refused
from planner.policies.fleet import (
    Fleet,
    PolicyLocation,
    decided_every,
    keep_fleet,
    load_fleet,
    other_periods,
    read_fleet,
)
from planner.runs.coverage import gaps_judged_by, needs_single_read, read_coverage
from planner.runs.landed import ReadingsLander
from planner.runs.metrics_past import land_pasts
from planner.runs.past_runs import schedule_period_s
from planner.sources.capture import open_capture
from planner.sources.live import Installation, Pace, installations, watch_installation
from planner.storage.landing import GroupKey
from planner.storage.layout import RunFolder
from planner.storage.run import Run
from planner.text.printable import one_line

log = logging.getLogger(__name__)

INSTALLATIONS_AT_ONCE = 8


_JUST_AFTER = timedelta(microseconds=1)


Moment = datetime | str | None

OnLanded = Callable[[GroupKey, datetime], object]
"""Gets group and time of each sample once it is on disk."""


def observe_capture(policies: PolicyLocation, data: Path, folder: Path, since: Moment, until: Moment) -> Run:
    """Land the capture's samples of every policy's group, from ``since`` to ``until``, both included.

    Times may be text. A group that was not recorded is among the run's problems. A replay leaves nothing in a cluster,
    wherever its policies are.
    """
    since, until = _moment(since, "since"), _moment(until, "until")
    fleet, capture = replace(read_fleet(policies), origin=None), open_capture(folder)
    problems = dict(fleet.refused)
    for policy in fleet.policies:
        group = policy.spec.source.group
        if group not in capture.header.groups:
            problems[policy.metadata.name] = f"group {group} is not in the recording {folder}"
            continue
        # What cannot be read of the recording is no group's own fault: it ends the run.
        samples = pipeline.observe_capture(capture, group, since, until + _JUST_AFTER)
        try:
            landed = pipeline.land_samples(data, samples)
        except BadInputError as error:
            problems[policy.metadata.name] = str(error)
            continue
        log.info("group %s: %d samples landed", one_line(group), len(landed))
    return _keep_run(fleet, problems, data, (since, until), capture.header.sample_every_s)


def observe_recording(
    policies: PolicyLocation, data: Path, folder: Path, since: Moment = None, until: Moment = None
) -> Run:
    """Do as ``observe_capture``; empty times are those at which the recording begins and ends."""
    header = open_capture(folder).header
    return observe_capture(policies, data, folder, since or header.started_at, until or header.ended_at)


def _keep_run(
    fleet: Fleet,
    problems: Mapping[str, str],
    data: Path,
    times: tuple[datetime, datetime],
    sample_every_s: float,
    period_s: float | None = None,
) -> Run:
    """Return the run of these times on the policies that it keeps for itself.

    ``period_s`` is the time from start to start, ``None`` where only the former runs show it.
    """
    for name, sentence in problems.items():
        log.warning("%s: %s", one_line(name), one_line(sentence))
    since, until = times
    folder = RunFolder.of(data, until)
    known_period_s = schedule_period_s(data, until) if period_s is None else period_s
    fleet = decided_every(fleet, known_period_s)
    for name, sentence in other_periods(fleet, known_period_s).items():
        log.warning("%s: %s", one_line(name), sentence)
    keep_fleet(fleet, folder, problems)
    return Run(data, folder.policies, since, until, sample_every_s)


def _moment(value: Moment, name: str) -> datetime:
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        given = "nothing" if value is None else repr(str(value))
        raise BadInputError(f"parameter {name}: found {given}, expected a time with zone like 2026-11-21T10:00:00Z")
    try:
        return at.astimezone(UTC)
    except OverflowError as error:  # the first and the last day of all, elsewhere
        raise BadInputError(f"parameter {name}: found {str(value)!r}, expected a time of this century") from error


def observe_live(
    policies: PolicyLocation,
    data: Path,
    watch_s: float | None = None,
    longest_s: float | None = None,
    *,
    can_retry: bool = False,
) -> Run:
    """Watch every policy's group for ``watch_s`` seconds and land the samples; the run is as long as the watch.

    ``None`` watches for the longest window of all policies, ``longest_s`` at most: what a window needs beyond that is
    in the history that earlier runs left. What ``planner sample`` covers is read once (``needs_single_read``).
    Installations are watched side by side, the groups of one together; a group that cannot be read is among the run's
    problems, and the run goes on even where no group could be read: its last stages say so of every policy. Raises
    ``OutOfReachError`` with all reasons instead where none could be read, one may be by another try, and the caller
    states that there is one (``can_retry``).
    """
    fleet = _live_fleet(policies)
    fleet_policies = fleet.policies
    seconds = _watch_s(fleet_policies, longest_s) if watch_s is None else watch_s
    since = datetime.now(UTC)
    failures, sample_every_s = _watch_all(installations(fleet_policies), data, seconds)
    if can_retry and len(failures) == len(fleet_policies):
        _check_final(failures)
    land_pasts(fleet_policies, data, since)
    return _observed_run(fleet, failures, data, since, sample_every_s)


def _check_final(failures: Mapping[str, PlannerError]) -> None:
    """Raise ``OutOfReachError`` with all reasons where another try may help one of them."""
    if any(error.can_retry for error in failures.values()):
        raise OutOfReachError("; ".join(f"{name}: {error}" for name, error in sorted(failures.items())))


def _live_fleet(policies: PolicyLocation) -> Fleet:
    """Return the policies; objects that cannot be served have that in their status before anybody waits for a watch.

    Raises ``BadInputError`` where none can be served.
    """
    fleet = load_fleet(policies)
    unwritten = report_refused(fleet)
    fleet.check_served()
    return replace(fleet, refused={**fleet.refused, **unwritten})


def observe_each(
    policies: PolicyLocation,
    data: Path,
    watch_s: float,
    kubeconfig: Path | None = None,
    period_s: float | None = None,
) -> tuple[Run, Mapping[str, PlannerError]]:
    """Watch every policy's group as ``observe_live`` does; return the run and why groups could not be read, by policy.

    The run goes on even where no group could be read. What metrics know of the past is not landed: without a lag
    history nothing would import it. Deployments are read by ``kubeconfig`` where a policy names no file of its own.
    ``period_s`` is the time from one run's start to the next one's, ``None`` where only former runs show it.
    """
    fleet = _live_fleet(policies)
    since = datetime.now(UTC)
    targets = installations(with_kubeconfig(policy, kubeconfig) for policy in fleet.policies)
    failures, sample_every_s = _watch_all(targets, data, watch_s)
    return _observed_run(fleet, failures, data, since, sample_every_s, period_s), failures


def with_kubeconfig(policy: ConsumerScalingPolicy, kubeconfig: Path | None) -> ConsumerScalingPolicy:
    """Return the policy as it is to be watched: the run keeps it as it was written, digest and all."""
    spec = policy.spec.kubernetes
    if kubeconfig is None or spec is None or spec.kubeconfig_file is not None:
        return policy
    reads = spec.model_copy(update={"kubeconfig_file": kubeconfig})
    return policy.model_copy(update={"spec": policy.spec.model_copy(update={"kubernetes": reads})})


def _observed_run(
    fleet: Fleet,
    failures: Mapping[str, PlannerError],
    data: Path,
    since: datetime,
    sample_every_s: float,
    period_s: float | None = None,
) -> Run:
    """Return the run that ends now."""
    problems = {**fleet.refused, **{name: f"its group was not read: {error}" for name, error in failures.items()}}
    return _keep_run(fleet, problems, data, (since, datetime.now(UTC)), sample_every_s, period_s)


def _watch_s(policies: Sequence[ConsumerScalingPolicy], longest_s: float | None) -> float:
    window_s = max(policy.snapshot_settings.window_s for policy in policies)
    return window_s if longest_s is None else min(window_s, longest_s)


def _watch_all(targets: Sequence[Installation], data: Path, seconds: float) -> tuple[Mapping[str, PlannerError], float]:
    """Return the reason for each policy whose group was never read, and the period that gaps are judged by."""
    now, coverage = datetime.now(UTC), read_coverage(data)
    paces = [Pace() for _ in targets]
    times = [0.0 if needs_single_read(coverage, target.policies, now) else seconds for target in targets]
    observe = partial(observe_installation, data=data)
    with ThreadPoolExecutor(max_workers=INSTALLATIONS_AT_ONCE, thread_name_prefix="observe") as pool:
        failures = dict(chain.from_iterable(pool.map(observe, targets, times, paces)))
    # One period for all, as the lag history is made in one go: the slowest installation's, or the sampler's.
    policies = chain.from_iterable(target.policies for target in targets)
    return failures, gaps_judged_by(coverage, policies, now, max(pace.sample_every_s for pace in paces))


def observe_installation(
    installation: Installation,
    seconds: float,
    pace: Pace,
    data: Path,
    on_landed: OnLanded = lambda _key, _at: None,
) -> Sequence[tuple[str, PlannerError]]:
    """Land every sample of a watch, one file a reading; return, for each policy whose group never was, the last reason.

    Settings that cannot be, say one policy's kubeconfig, keep the whole installation from being watched; each policy is
    then watched alone, so that only those fail whose settings they are.
    """
    names = [policy.metadata.name for policy in installation.policies]
    lander = ReadingsLander(data, on_landed)
    failures = attempt(", ".join(names), "observe", _watch_together, installation, lander, seconds, pace)
    if not isinstance(failures, PlannerError):
        return failures
    if len(names) == 1:
        return [(names[0], failures)]
    observe = partial(observe_installation, data=data, on_landed=on_landed)
    alone = [Installation((policy,)) for policy in installation.policies]
    with ThreadPoolExecutor(max_workers=INSTALLATIONS_AT_ONCE, thread_name_prefix="observe") as pool:
        return tuple(chain.from_iterable(pool.map(lambda target: observe(target, seconds, pace), alone)))


def _watch_together(
    installation: Installation, lander: ReadingsLander, seconds: float, pace: Pace
) -> Sequence[tuple[str, PlannerError]]:
    failures: dict[str, PlannerError] = {}
    has_answered: set[str] = set()
    for policy, response in watch_installation(installation, seconds, pace):
        failure = _failure(response, lander)
        if failure is None:
            has_answered.add(policy.metadata.name)
            continue
        failures[policy.metadata.name] = failure
        if not has_answered and len(failures) == len(installation.policies):
            break  # no server answers: the caller may retry sooner than the watch would end
    lander.finish()
    return [(name, error) for name, error in failures.items() if name not in has_answered]


def _failure(response: GroupSample | PlannerError, lander: ReadingsLander) -> PlannerError | None:
    """Have the sample landed; return why there is none, or none that can be kept."""
    if isinstance(response, PlannerError):
        return response
    try:
        lander.add(response)
    except BadInputError as error:
        return error
    return None
