"""The path on files: what each stage of one run reads and writes below the data folder.

Airflow's tasks call ``observe_capture`` or ``observe_live``, ``read_results``, ``report`` and ``conclude``; the stages
after observing, up to ``plan_policy``, are one Spark app. What travels from stage to stage is a ``Run``, as plain text
values; everything else lies in files, the policies among them: ``observe`` reads them, and keeps them for the others in
the run's own folder.

Each policy is served by itself. What fails for one is a sentence, which ``conclude`` raises once all others are done.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Literal, Protocol, TypedDict, TypeVar, cast

from planner import pipeline
from planner.calibration import read_track
from planner.cluster_reports import report_refused
from planner.coverage import gaps_judged_by, needs_single_read, read_coverage
from planner.documents.data import OUTCOMES, SNAPSHOT
from planner.documents.plan import PLAN, read_plan_or_decision
from planner.documents.policy import ConsumerScalingPolicy, read_policies
from planner.errors import BadInputError, DocumentError, IncompleteError, OutOfReachError, PlannerError
from planner.fleet import Fleet, PolicyLocation, keep_fleet, load_fleet, read_fleet, read_problems
from planner.isolation import attempt
from planner.model.samples import GroupSample
from planner.model.snapshot import GroupSnapshot
from planner.notices import Notice, NoticeRules, Result, policies_known, record_results
from planner.printable import one_line
from planner.rollout.plan import DecisionRecord, RolloutPlan
from planner.simulation.outcome import CandidateOutcome
from planner.sources.capture import open_capture
from planner.sources.live import Installation, Pace, installations, watch_installation
from planner.sources.past import FIRST_TIME, read_past
from planner.storage.files import remove_file, write_atomically
from planner.storage.layout import PolicyFiles, RunFolder, is_time_name, metrics_mark, time_name, time_of_name
from planner.storage.tidying import tidy_runs
from planner.verification.track import TrackRecord
from planner.words import counted

log = logging.getLogger(__name__)

INSTALLATIONS_AT_ONCE = 8
_JUST_AFTER = timedelta(microseconds=1)


Moment = datetime | str | None

_T = TypeVar("_T")

Decided = TypedDict(
    "Decided",
    {"policy": str, "from": int | None, "to": int | None, "hold": str | None, "reason": str, "plan": str | None},
)
"""What came of one policy, as it travels from task to task: counts of consumers, one sentence, the plan's file.

``to`` is ``None`` where nothing was decided, and ``reason`` then says why. A hold has equal counts, its cause as
``hold``, and no plan.
"""


class RunMessage(TypedDict):
    """A ``Run`` as it travels from task to task."""

    data: str
    policies: str
    since: str
    until: str
    sample_every_s: float


@dataclass(frozen=True, slots=True)
class Run:
    """What all stages of one run share.

    Samples from ``since`` to ``until``, both included, are its input; its snapshots are of ``until``.
    """

    data: Path
    policies: Path
    since: datetime
    until: datetime
    sample_every_s: float

    @property
    def folder(self) -> RunFolder:
        """The run's own files."""
        return RunFolder.of(self.data, self.until)

    def message(self) -> RunMessage:
        """Return the run as plain values."""
        return {
            "data": str(self.data),
            "policies": str(self.policies),
            "since": self.since.isoformat(),
            "until": self.until.isoformat(),
            "sample_every_s": self.sample_every_s,
        }

    @classmethod
    def of(cls, message: RunMessage) -> "Run":
        """Return the run that a message names."""
        return cls(
            data=Path(message["data"]),
            policies=Path(message["policies"]),
            since=datetime.fromisoformat(message["since"]),
            until=datetime.fromisoformat(message["until"]),
            sample_every_s=message["sample_every_s"],
        )


class RunFiles(Protocol):
    """A run as far as what follows its decisions has to know it: the data folder, and its own files in there."""

    @property
    def data(self) -> Path:
        """The data folder."""

    @property
    def folder(self) -> RunFolder:
        """The run's own files."""


@dataclass(frozen=True, slots=True)
class DecidedRun:
    """The ``RunFiles`` of the run whose snapshots are of ``at``."""

    data: Path
    at: datetime

    @property
    def folder(self) -> RunFolder:
        """The run's own files."""
        return RunFolder.of(self.data, self.at)


Pages = Literal["all", "plans", "none"]
"""For which policies a run writes pages: every decision, those with a plan, or nobody."""


@dataclass(frozen=True, slots=True)
class Case:
    """One decision with all that it rests on, and what the group's earlier forecasts came to (``track``)."""

    policy: ConsumerScalingPolicy
    files: PolicyFiles
    snapshot: GroupSnapshot
    outcomes: tuple[CandidateOutcome, ...]
    record: DecisionRecord
    track: TrackRecord

    @property
    def plan(self) -> RolloutPlan | None:
        """The plan, ``None`` for a hold."""
        return pipeline.plan(self.snapshot, self.record, self.policy, self.outcomes)


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


def _keep_run(
    fleet: Fleet, problems: Mapping[str, str], data: Path, times: tuple[datetime, datetime], sample_every_s: float
) -> Run:
    """Return the run of these times on the policies that it keeps for itself."""
    for name, sentence in problems.items():
        log.warning("%s: %s", one_line(name), one_line(sentence))
    since, until = times
    folder = RunFolder.of(data, until)
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
    policies: PolicyLocation, data: Path, watch_s: float | None = None, longest_s: float | None = None
) -> Run:
    """Watch every policy's group for ``watch_s`` seconds and land the samples; the run is as long as the watch.

    ``None`` watches for the longest window of all policies, ``longest_s`` at most: what a window needs beyond that is
    in the history that earlier runs left. What ``planner sample`` covers is read once (``needs_single_read``).
    Installations are watched side by side, the groups of one together; a group that cannot be read is among the run's
    problems. Raises the first group's error when not a single one could be read.
    """
    fleet = _live_fleet(policies)
    fleet_policies = fleet.policies
    seconds = _watch_s(fleet_policies, longest_s) if watch_s is None else watch_s
    since = datetime.now(UTC)
    failures, sample_every_s = _watch_all(installations(fleet_policies), data, seconds)
    if len(failures) == len(fleet_policies):
        raise failures[fleet_policies[0].metadata.name]
    _land_pasts(fleet_policies, data, since)
    return _observed_run(fleet, failures, data, since, sample_every_s)


def _live_fleet(policies: PolicyLocation) -> Fleet:
    """Return the policies; objects that cannot be served have that in their status before anybody waits for a watch.

    Raises ``BadInputError`` where none can be served.
    """
    fleet = load_fleet(policies)
    unwritten = report_refused(fleet)
    fleet.check_served()
    return replace(fleet, refused={**fleet.refused, **unwritten})


def observe_each(
    policies: PolicyLocation, data: Path, watch_s: float, kubeconfig: Path | None = None
) -> tuple[Run, Mapping[str, PlannerError]]:
    """Watch every policy's group as ``observe_live`` does; return the run and why groups could not be read, by policy.

    The run goes on even where no group could be read. What metrics know of the past is not landed: without a lag
    history nothing would import it. Deployments are read by ``kubeconfig`` where a policy names no file of its own.
    """
    fleet = _live_fleet(policies)
    since = datetime.now(UTC)
    targets = installations(with_kubeconfig(policy, kubeconfig) for policy in fleet.policies)
    failures, sample_every_s = _watch_all(targets, data, watch_s)
    return _observed_run(fleet, failures, data, since, sample_every_s), failures


def with_kubeconfig(policy: ConsumerScalingPolicy, kubeconfig: Path | None) -> ConsumerScalingPolicy:
    """Return the policy as it is to be watched: the run keeps it as it was written, digest and all."""
    spec = policy.spec.kubernetes
    if kubeconfig is None or spec is None or spec.kubeconfig_file is not None:
        return policy
    reads = spec.model_copy(update={"kubeconfig_file": kubeconfig})
    return policy.model_copy(update={"spec": policy.spec.model_copy(update={"kubernetes": reads})})


def _observed_run(
    fleet: Fleet, failures: Mapping[str, PlannerError], data: Path, since: datetime, sample_every_s: float
) -> Run:
    """Return the run that ends now."""
    problems = {**fleet.refused, **{name: f"its group was not read: {error}" for name, error in failures.items()}}
    return _keep_run(fleet, problems, data, (since, datetime.now(UTC)), sample_every_s)


def _watch_s(policies: Sequence[ConsumerScalingPolicy], longest_s: float | None) -> float:
    window_s = max(policy.snapshot_settings.window_s for policy in policies)
    return window_s if longest_s is None else min(window_s, longest_s)


def _watch_all(targets: Sequence[Installation], data: Path, seconds: float) -> tuple[Mapping[str, PlannerError], float]:
    """Return the reason for each policy whose group was never read, and the period that gaps are judged by."""
    now, coverage, land = datetime.now(UTC), read_coverage(data), partial(pipeline.land_live, data)
    paces = [Pace() for _ in targets]
    times = [0.0 if needs_single_read(coverage, target.policies, now) else seconds for target in targets]
    with ThreadPoolExecutor(max_workers=INSTALLATIONS_AT_ONCE, thread_name_prefix="observe") as pool:
        failures = dict(chain.from_iterable(pool.map(observe_installation, targets, repeat(land), times, paces)))
    # One period for all, as the lag history is made in one go: the slowest installation's, or the sampler's.
    policies = chain.from_iterable(target.policies for target in targets)
    return failures, gaps_judged_by(coverage, policies, now, max(pace.sample_every_s for pace in paces))


def _land_pasts(policies: Sequence[ConsumerScalingPolicy], data: Path, until: datetime) -> None:
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
            past = read_past(policy, _last_read(policy, data, until), until)
        except PlannerError as error:
            # What is below this error, the server has answered: another group may be better off.
            if type(error) is OutOfReachError:
                away.add(server)
            log.warning("past of group %s was not read: %s", one_line(group), error)
        else:
            if past is not None:
                pipeline.land_metrics(data, past)
                write_atomically(_mark(policy, data), time_name(until))


def _server_of(policy: ConsumerScalingPolicy) -> object:
    """Return what decides whether a metrics server can be reached at all."""
    server = policy.spec.source.prometheus
    return server and (server.url, server.ca_file)


def _last_read(policy: ConsumerScalingPolicy, data: Path, until: datetime) -> datetime:
    """Return up to when the group's metrics were read, at most two weeks ago."""
    mark = _mark(policy, data)
    name = mark.read_text(encoding="utf-8") if mark.exists() else ""
    first = until - FIRST_TIME
    return max(first, time_of_name(name)) if is_time_name(name) and name < time_name(until) else first


def _mark(policy: ConsumerScalingPolicy, data: Path) -> Path:
    source = policy.spec.source
    return metrics_mark(data, source.system, source.cluster, source.group)


def observe_installation(
    installation: Installation, land: Callable[[GroupSample], object], seconds: float, pace: Pace
) -> Sequence[tuple[str, PlannerError]]:
    """Have ``land`` take every sample; return, for each policy whose group was never read, the last reason.

    Settings that cannot be, say one policy's kubeconfig, keep the whole installation from being watched; each policy is
    then watched alone, so that only those fail whose settings they are.
    """
    names = [policy.metadata.name for policy in installation.policies]
    failures = attempt(", ".join(names), "observe", _watch_together, installation, land, seconds, pace)
    if not isinstance(failures, PlannerError):
        return failures
    if len(names) == 1:
        return [(names[0], failures)]
    alone = [Installation((policy,)) for policy in installation.policies]
    with ThreadPoolExecutor(max_workers=INSTALLATIONS_AT_ONCE, thread_name_prefix="observe") as pool:
        return tuple(
            chain.from_iterable(pool.map(lambda target: observe_installation(target, land, seconds, pace), alone))
        )


def _watch_together(
    installation: Installation, land: Callable[[GroupSample], object], seconds: float, pace: Pace
) -> Sequence[tuple[str, PlannerError]]:
    failures: dict[str, PlannerError] = {}
    has_answered: set[str] = set()
    for policy, response in watch_installation(installation, seconds, pace):
        if isinstance(response, PlannerError):
            failures[policy.metadata.name] = response
            if not has_answered and len(failures) == len(installation.policies):
                break  # no server answers: the caller may retry sooner than the watch would end
        else:
            land(response)
            has_answered.add(policy.metadata.name)
    return [(name, error) for name, error in failures.items() if name not in has_answered]


def plan_policy(run: RunFiles, policy: ConsumerScalingPolicy) -> Decided:
    """Write the plan of a decision to scale, and the snapshot beside it; return what came of the policy.

    A hold has no plan: one of an earlier try of the same run is removed.
    """
    result = _served(run, "plan", _plan_case, policy)
    if isinstance(result, PlannerError):
        return {
            "policy": policy.metadata.name,
            "from": None,
            "to": None,
            "hold": None,
            "reason": str(result),
            "plan": None,
        }
    return result


def _plan_case(case: Case) -> Decided:
    decision, path = case.record.decision, _write_plan(case)
    log.info("policy %s: %s", case.policy.metadata.name, one_line(decision.reason))
    return {
        "policy": case.policy.metadata.name,
        "from": decision.current,
        "to": decision.target,
        "hold": decision.hold_cause,
        "reason": decision.reason,
        "plan": None if path is None else str(path),
    }


def _write_plan(case: Case) -> Path | None:
    write_atomically(case.files.snapshot, SNAPSHOT.dump(case.snapshot))
    made = case.plan
    if made is None:
        remove_file(case.files.plan)
        return None
    for doubt in case.track.doubts:
        log.warning("policy %s: %s", case.policy.metadata.name, one_line(doubt))
    document = pipeline.plan_document(made, case.record, case.policy, case.track.doubts)
    return write_atomically(case.files.plan, PLAN.text(document))


def keep_results(run: RunFolder, decided: Sequence[Decided]) -> None:
    """Write what came of every policy into the run's own folder, for ``read_results``."""
    write_atomically(run.results, json.dumps(list(decided), indent=2) + "\n")


def read_results(run: RunFolder) -> Sequence[Decided]:
    """Return what came of every policy, by its name. Raises ``BadInputError`` where no plan stage has ended."""
    if not run.results.exists():
        raise BadInputError(f"{run.results} does not exist: it is what the stage plan leaves, so run that first")
    return cast("list[Decided]", json.loads(run.results.read_text(encoding="utf-8")))


def report(run: Run, pages: Pages) -> Mapping[str, str]:
    """Write the pages that are asked for; return why there is none, a sentence for each policy that lacks its page.

    A page of an earlier try of the same run goes where none is asked for now.
    """
    policies = read_policies(run.policies)
    due = [policy for policy in policies if _has_page(run.folder.policy(policy.metadata.name), pages)]
    results = ((policy.metadata.name, report_policy(run, policy)) for policy in due)
    return {name: str(result) for name, result in results if isinstance(result, PlannerError)}


def _has_page(files: PolicyFiles, pages: Pages) -> bool:
    if pages == "all" or (pages == "plans" and files.plan.exists()):
        return True
    remove_file(files.report)
    return False


def report_policy(run: RunFiles, policy: ConsumerScalingPolicy) -> Path | PlannerError:
    """Write one policy's page and return its path, or why there is none."""
    return _served(run, "report", _write_report, policy)


def _write_report(case: Case) -> Path:
    from planner.report import write_report  # noqa: PLC0415  only this stage needs the report extra

    bound = case.policy.objective.stated_utilisation
    return write_report(
        case.files.report,
        case.snapshot,
        case.outcomes,
        case.record,
        case.plan,
        max_utilisation=bound,
        track=case.track,
    )


def conclude(run: Run, decided: Sequence[Decided], without_page: Mapping[str, str]) -> str:
    """Return what came of the run as one sentence of counts.

    Raises ``IncompleteError`` that names every policy, or policy file, that was not served, each with its reason.
    """
    failures = failures_of(run, decided, without_page)
    counts = summary(decided)
    if failures:
        reasons = "; ".join(f"{name}: {reason.rstrip('.')}" for name, reason in sorted(failures.items()))
        raise IncompleteError(f"{counts} {len(failures)} failed: {reasons}.")
    return counts


def failures_of(run: Run, decided: Sequence[Decided], without_page: Mapping[str, str]) -> Mapping[str, str]:
    """Return why policies, or policy files, were not served whole: a sentence each, by name."""
    undecided = {line["policy"]: line["reason"] for line in decided if line["to"] is None}
    return {**without_page, **undecided, **read_problems(run.folder)}


def note(run: Run, decided: Sequence[Decided], without_page: Mapping[str, str]) -> str:
    """Return what came of the run in counts that add up, like ``12 policies: 3 plans, 8 holds, 1 failed``."""
    failures = failures_of(run, decided, without_page)
    served = [line for line in decided if line["policy"] not in failures]
    plans = sum(line["plan"] is not None for line in served)
    policies = counted(len(served) + len(failures), "policy", "policies")
    return f"{policies}: {counted(plans, 'plan')}, {counted(len(served) - plans, 'hold')}, {len(failures)} failed"


def notices(run: Run, decided: Sequence[Decided], rules: NoticeRules) -> Sequence[Notice]:
    """Return what people should know of the run's policies after all runs until now, and keep its results for the next.

    A policy that earlier runs knew and this one could not read is one without a decision.
    """
    problems = read_problems(run.folder)
    results = [
        Result(line["policy"], line["to"] is not None, line["hold"], problems.get(line["policy"], line["reason"]))
        for line in decided
    ]
    if problems:
        unread = sorted(policies_known(run.data).keys() - {result.policy for result in results})
        reason = f"its policy was not read. {'; '.join(problems.values())}"
        results += [Result(name, False, None, reason) for name in unread]
    return record_results(run.data, run.until, results, rules)


def age_at_decision_s(run: Run) -> float | None:
    """Return how many seconds after the run's end its last decision was written, ``None`` where there is none.

    So old was what a live run had seen when it decided.
    """
    written = [path.stat().st_mtime for path in run.folder.path.glob("*/decision.yaml")]
    return max(written) - run.until.timestamp() if written else None


def tidy(run: Run, keep_days: int) -> None:
    """Remove what runs and migrations left that are more than ``keep_days`` older than this one."""
    removed = tidy_runs(run.data, run.until - timedelta(days=keep_days))
    if removed:
        log.info(
            "%s more than %d days old removed", counted(removed, "run or migration", "runs and migrations"), keep_days
        )


def summary(decided: Sequence[Decided]) -> str:
    """Return what came of all policies as one sentence of counts."""
    plans = sum(line["plan"] is not None for line in decided)
    undecided = sum(line["to"] is None for line in decided)
    holds = len(decided) - plans - undecided
    policies = counted(len(decided), "policy", "policies")
    return f"{policies}: {plans} to scale, {holds} to hold, {undecided} without a decision."


def cases(run: Run) -> Iterator[Case]:
    """Yield every decision of the run, by the policy's name; policies without one are logged with their reason."""
    for policy in read_policies(run.policies):
        case = _served(run, "read", lambda case: case, policy)
        if isinstance(case, Case):
            yield case


def _served(run: RunFiles, stage: str, work: Callable[[Case], _T], policy: ConsumerScalingPolicy) -> _T | PlannerError:
    """Return what ``work`` makes of the policy's decision, or why it makes nothing of it."""
    name = policy.metadata.name
    result = attempt(name, stage, lambda: work(_case(run, policy)))
    if isinstance(result, PlannerError):
        log.warning("policy %s: %s", name, result)
    return result


def _case(run: RunFiles, policy: ConsumerScalingPolicy) -> Case:
    """Return the policy's decision with what it rests on. Raises ``BadInputError`` where there is none."""
    name = policy.metadata.name
    files = run.folder.policy(name)
    if files.decision.exists():
        record, snapshot = read_decision(files.decision), SNAPSHOT.read(run.folder.snapshot(name))
        track = read_track(run.data, record.group, record.decision.decided_at)
        return Case(policy, files, snapshot, OUTCOMES.read(files.outcomes), record, track)
    if files.no_decision.exists():
        raise BadInputError(files.no_decision.read_text(encoding="utf-8").strip())
    raise BadInputError(f"no decision for policy {name}: it came after this run's snapshots, the next run has it")


def read_decision(path: Path) -> DecisionRecord:
    """Return the decision in the file. Raises ``BadInputError`` when it is missing or something else."""
    record = read_plan_or_decision(path)
    if isinstance(record, RolloutPlan):
        raise DocumentError(f"{path}: found a plan, expected a decision: run the decide stage again")
    return record
