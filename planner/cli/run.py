"""``planner run``: the whole path for all policies of a folder or a namespace, once or again and again.

It takes neither Airflow nor Spark.
"""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from planner.cli.console import Answer, Format, FormatOption, Output, answering, check_output, errors, text_console
from planner.cli.rollouts import Kubeconfig
from planner.errors import BadInputError, IncompleteError, OutOfReachError, PlannerError
from planner.text.words import duration

if TYPE_CHECKING:
    from planner.policies.cluster_reports import ClusterReport
    from planner.policies.fleet import PolicyLocation
    from planner.runs.local_run import Served, Wishes
    from planner.runs.standing import StandingDecisions
    from planner.storage.run import Run

OBSERVE_S: Final = 60
"""A minute shows a rate and a rebalance; what lies before it is known from former runs."""

LONGEST_S: Final = 3600

_UNITS: Final = {"s": 1, "m": 60, "h": 3600}


def run(
    policies: Annotated[
        str,
        typer.Option(
            "--policies",
            "-p",
            metavar="FOLDER|k8s://NAMESPACE",
            help="Folder of ConsumerScalingPolicy files, or a namespace that holds them as objects.",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path,
        typer.Option(
            help="Data folder of samples and runs: keep it, the next run looks back at it.", show_default=False
        ),
    ],
    plans: Annotated[
        Path | None, typer.Option(help="Folder for a copy of every plan, under the plan's own name.")
    ] = None,
    observe_seconds: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=LONGEST_S,
            help="How long to watch, a sample every 5 s. Groups that planner sample covers are looked at once.",
            show_default=f"{OBSERVE_S}, or half of --every where that is less",
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(help="Run again and again, a start every 30s, 5m or 1h; without it once.", show_default=False),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, max=64, help="Policies that are worked on at a time, a process each.")
    ] = 2,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write a page for every decision.")] = True,
    keep_days: Annotated[int, typer.Option(min=1, help="Days after which a run's files are removed.")] = 30,
    kubeconfig: Kubeconfig = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Observe every policy's group, decide, and write plans and pages; each policy by itself.

    A watch may be short, as the next run looks back at the samples of this one. Until they cover a policy's window
    the planner holds (IncompleteData); runs have to come at least twice a window. Where planner sample stands, a run
    takes one sample and decides. One line a policy says what came of it. Nothing is approved that the policy's own
    criteria do not approve, and nothing is applied. With k8s://NAMESPACE each policy's status says what came of it,
    and its plan is created there, for others to approve. With --every a decision to stay stands until something has
    changed that it rests on.

    Exit codes: 0 every policy has its decision (a hold is one), 1 some have none, no page, plan object or status, each
    named with its reason, 2 no policy can be used, 3 not one group, or the cluster, could be read. With --every
    failures are printed, and it goes on.
    """
    from planner.policies.fleet import policy_location
    from planner.runs.local_run import Wishes
    from planner.runs.standing import StandingDecisions

    check_output(form, output)
    if page:
        _check_pages()
    wishes = Wishes(page, plans)
    period = None if every is None else period_s(every)
    location = policy_location(policies, kubeconfig)
    schedule = Schedule(location, data, watch_s(observe_seconds, period), jobs, keep_days, kubeconfig, period)
    standing = StandingDecisions()
    if period is None:
        _raise_failures(*_once(schedule, wishes, standing, form, output))
        return
    for began in _starts(period):
        try:
            _raise_failures(*_once(schedule, wishes, standing, form, output))
        except PlannerError as error:
            errors.print(f"planner: {error}", style="red")
        if (took := time.monotonic() - began) > period:
            errors.print(_took_too_long(took, period), style="yellow")


@dataclass(frozen=True, slots=True)
class Schedule:
    """What every run of a schedule has in common; ``observe_s`` and ``period_s``, from start to start, in seconds."""

    policies: "PolicyLocation"
    data: Path
    observe_s: int
    jobs: int
    keep_days: int
    kubeconfig: Path | None
    period_s: int | None


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """What came of one run, and what it left in the cluster (``report``).

    ``failures`` are sentences by policy or file; ``nobody_answered``: no broker did.
    """

    run: "Run"
    served: "tuple[Served, ...]"
    report: "ClusterReport"
    failures: Mapping[str, str]
    nobody_answered: bool


def _check_pages() -> None:
    """Raise ``MissingExtraError`` before anybody waits for a watch."""
    from planner.report.extra import load

    load("jinja2")
    load("vl_convert")


def period_s(text: str) -> int:
    """Return the seconds of ``30s``, ``5m`` or ``1h``. Raises ``BadInputError`` for anything else."""
    match = re.fullmatch(r"([1-9]\d{0,5})([smh])", text)
    if match is None:
        raise BadInputError(f"option --every: found {text!r}, expected a time like 30s, 5m or 1h")
    return int(match[1]) * _UNITS[match[2]]


def watch_s(stated: int | None, period: int | None) -> int:
    """Return for how many seconds a run watches: so that it can end within the period, in seconds, of ``--every``.

    Raises ``BadInputError`` for a longer watch that was asked for.
    """
    if stated is None:
        return OBSERVE_S if period is None else min(OBSERVE_S, period // 2)
    if period is not None and stated > period:
        raise BadInputError(
            f"option --observe-seconds: found {stated}, expected at most the {period} s of --every, as the next run "
            "begins then: watch for less, or run less often"
        )
    return stated


def _took_too_long(took_s: float, period: int) -> str:
    return (
        f"planner: this run took {duration(took_s)}, longer than the {duration(period)} of --every, so that the next "
        "one begins at once: run less often, with more --jobs, or with --no-page"
    )


def _starts(seconds: int) -> Iterator[float]:
    """Yield the time of each start, by ``time.monotonic``.

    One whose time passed during the run before comes at once, others are not made up for.
    """
    due = time.monotonic()
    while True:
        time.sleep(max(0.0, due - time.monotonic()))
        due = max(due, time.monotonic() - seconds) + seconds
        yield time.monotonic()


def _once(
    schedule: Schedule, wishes: "Wishes", standing: "StandingDecisions", form: Format | None, output: str | None
) -> "tuple[RunAnswer, str]":
    """Do one run and print what came of it; return that, and its counts in a sentence.

    Decisions that are ``standing`` by what it reads are not made anew.
    """
    from planner.documents.policy_folder import read_policies
    from planner.policies.cluster_reports import report_run
    from planner.runs.conclude import failures_of, run_summary
    from planner.runs.local_run import serve_all
    from planner.runs.observe import observe_each
    from planner.runs.past_runs import forget

    began = datetime.now(UTC)
    with errors.status(f"watching the groups of {schedule.policies}, {duration(schedule.observe_s)} at most"):
        run, unread = observe_each(
            schedule.policies, schedule.data, schedule.observe_s, schedule.kubeconfig, schedule.period_s
        )
    kept = tuple(read_policies(run.policies))
    with errors.status(f"deciding for {len(kept)} policies"):
        confirmed = standing.check(run, kept)
        names = [result.decided["policy"] for result in confirmed]
        fresh = list(serve_all(run, wishes, schedule.jobs, names))
        standing.remember(run, fresh)
    served = tuple(sorted([*confirmed, *fresh], key=lambda result: result.decided["policy"]))
    forget(run.data, kept, run.until, schedule.keep_days)
    decided = [result.decided for result in served]
    pages = {result.decided["policy"]: result.without_page for result in served if result.without_page is not None}
    made_in = {result.decided["policy"]: result.made_in for result in confirmed if result.made_in is not None}
    report = report_run(run, decided, _next_start(schedule, began, run), made_in)
    failures = {**failures_of(run, decided, pages), **report.failures}
    done = RunAnswer(
        run, served, report, failures, len(unread) == len(kept) and all(e.can_retry for e in unread.values())
    )
    counts = run_summary(decided)
    with answering(form, output) as answer:
        _print(done, counts, answer)
    return done, counts


def _next_start(schedule: Schedule, began: datetime, run: "Run") -> datetime | None:
    """Return when the next run is due: by ``--every``, else as the last runs came; ``None`` where nobody knows."""
    from planner.runs.past_runs import run_period_s

    if schedule.period_s is not None:
        return max(began + timedelta(seconds=schedule.period_s), datetime.now(UTC))
    period_s = run_period_s(run.data, run.until)
    return None if period_s is None else began + timedelta(seconds=period_s)


def _raise_failures(done: RunAnswer, counts: str) -> None:
    """Raise ``IncompleteError`` where a policy failed, ``OutOfReachError`` where not one group could be read."""
    if not done.failures:
        return
    sentence = f"{counts} {len(done.failures)} failed, as said above: {', '.join(sorted(done.failures))}"
    raise (OutOfReachError if done.nobody_answered else IncompleteError)(sentence)


def _print(done: RunAnswer, counts: str, answer: Answer) -> None:
    if answer.is_text:
        console = text_console()
        for line in _lines(done):
            console.print(line, soft_wrap=True)
        console.print(counts, style="bold", soft_wrap=True)
        ages = [served.data_age_s for served in done.served if served.data_age_s is not None]
        if ages:
            console.print(f"Data at decision: {duration(max(ages))} old at most.")
        return
    plans = done.report.plans
    policies = [
        {
            **served.decided,
            "page": served.page,
            "dataAgeSeconds": served.data_age_s,
            "planObject": plans.get(served.decided["policy"]),
            "decidedIn": None if served.made_in is None else str(served.made_in.path),
        }
        for served in done.served
    ]
    failures = [{"name": name, "reason": reason} for name, reason in sorted(done.failures.items())]
    run = done.run
    about = {"since": run.since.isoformat(), "until": run.until.isoformat(), "folder": str(run.folder.path)}
    answer.write("RunSummary", {**about, "policies": policies, "failures": failures})


def _lines(done: RunAnswer) -> Iterator[str]:
    """Yield one line a policy, aligned, and one for each file or page that failed beside."""
    rows: list[tuple[str, str, str]] = [_row(served, done) for served in done.served]
    named = {served.decided["policy"] for served in done.served}
    named -= done.report.failures.keys()  # the decision is there, and so is the sentence on its plan
    rows += [(name, "failed", reason) for name, reason in sorted(done.failures.items()) if name not in named]
    width = max((len(name) for name, _, _ in rows), default=0)
    change = max((len(counts) for _, counts, _ in rows), default=0)
    yield from (f"{name:<{width}}  {counts:<{change}}  {text}" for name, counts, text in rows)


def _row(served: "Served", done: RunAnswer) -> tuple[str, str, str]:
    line: Mapping[str, Any] = served.decided
    name = line["policy"]
    if line["to"] is None:
        return name, "failed", done.failures.get(name, line["reason"])
    change = f"{line['from']} -> {line['to']}"
    plan = f" Plan: {line['plan']}" if line["plan"] else ""
    made = done.report.plans.get(name)
    plan += f" In the cluster: {made}." if made else ""
    page = f" No page: {served.without_page}" if served.without_page else ""
    return name, change, f"{line['reason']}{plan}{page}"
