"""What the page of a run says: its figures, its plans as they went, the owners of queues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.execution.ports import StoredPlan
from planner.execution.progress import StepProgress
from planner.report import words
from planner.report.consumers import Marks
from planner.report.ownership import Ownership, ownership
from planner.report.run import Run
from planner.report.steps import step_row
from planner.rollout.explain import explain_plan
from planner.verification.verdict import Figure, Fit

_UNITS = {"queues": "", "share": "", "seconds": "s"}
MOVED = "moved queues"
"""The figure's name, as ``planner.verification`` spells it."""


@dataclass(frozen=True, slots=True)
class DoneStep:
    """A step as it went: ``took`` in words, ``said`` what was observed, ``state`` ``done``, ``undone`` or ``open``."""

    number: int
    title: str
    took: str
    said: str
    state: str


@dataclass(frozen=True, slots=True)
class Check:
    """One figure of the verdict in words."""

    name: str
    forecast: str
    seen: str
    fit: Fit


@dataclass(frozen=True, slots=True)
class PlanSection:
    """One plan as it went."""

    anchor: str
    title: str
    reason: str
    phase: str
    message: str
    approved: str
    explanation: tuple[str, ...]
    steps: tuple[DoneStep, ...]
    checks: tuple[Check, ...]
    surprises: tuple[str, ...]


def headline(run: Run) -> str:
    """Return the run in one line: the counts that it went through."""
    counts = [run.sights[0].replicas]
    for observation in run.sights:
        if observation.replicas != counts[-1]:
            counts.append(observation.replicas)
    return f"{' → '.join(map(str, counts))} consumers" if len(counts) > 1 else f"{words.consumers(counts[0])} all along"


def facts(run: Run) -> tuple[tuple[str, str, str], ...]:
    """Return the figures on top: name, figure, what it means."""
    verdicts = [figure for stored in run.plans for figure in _figures(stored)]
    fits = [figure.fit for figure in verdicts]
    most = max(run.sights, key=lambda observation: observation.lag)
    moved = [figure for figure in verdicts if figure.name == MOVED]
    return (
        ("Plans carried out", str(sum(plan.status.ended == "new" for plan in run.plans)), f"of {len(run.plans)}"),
        (
            "Most messages waiting",
            words.number(most.lag),
            f"at {most.at:%H:%M:%S}; {words.number(run.sights[-1].lag)} at the end",
        ),
        (
            "Queues moved",
            " + ".join(_between(figure.seen_low, figure.seen_high) for figure in moved) or words.UNKNOWN,
            "forecast: " + (" + ".join(_between(figure.low, figure.high) for figure in moved) or words.UNKNOWN),
        ),
        (
            "Forecasts met",
            f"{fits.count(Fit.INSIDE)}",
            f"{fits.count(Fit.OUTSIDE)} missed, {fits.count(Fit.UNKNOWN)} that nobody could see",
        ),
    )


def describe_run(run: Run) -> str:
    """Return the charts in words."""
    most = max(observation.lag for observation in run.sights)
    notes = "; ".join(f"{note.text} at {note.at:%H:%M:%S}" for note in run.notes)
    seconds = words.duration((run.ends - run.begins).total_seconds())
    return (
        f"{headline(run)} in {seconds}; {notes + '; ' if notes else ''}at most {words.messages(most)} waited, "
        f"{words.messages(run.sights[-1].lag)} at the end."
    )


def ownership_of(run: Run) -> Ownership:
    """Return the drawing of each queue's owners over time."""
    members = list(dict.fromkeys(member for observation in run.sights for member in observation.members))
    owners_over_time = [(observation.at, observation.owners) for observation in run.sights]
    return ownership(owners_over_time, Marks(members, ()))


def plan_section(number: int, stored: StoredPlan) -> PlanSection:
    """Return one plan as it went."""
    plan, status = stored.plan, stored.status
    before, after = plan.preconditions.replicas, plan.target_replicas
    approval = status.approval
    return PlanSection(
        anchor=f"plan-{number}",
        title=f"Plan {number}: from {before} to {after}" if after is not None else f"Plan {number}",
        reason=plan.reason,
        phase=str(status.phase),
        message=status.message,
        approved=f"{approval.digest}, {words.moment(approval.at)}{f' by {approval.by}' if approval.by else ''}"
        if approval
        else "not approved",
        explanation=tuple(explain_plan(plan)),
        steps=tuple(done_step(index, stored) for index in range(len(plan.steps))),
        checks=tuple(check(figure) for figure in _figures(stored)),
        surprises=status.surprises,
    )


def done_step(index: int, stored: StoredPlan) -> DoneStep:
    """Return one step as it went."""
    begun: Mapping[int, StepProgress] = {progress.index: progress for progress in stored.status.steps}
    progress, title = begun.get(index), step_row(stored.plan.steps[index], stored.plan.group.system).title
    if progress is None:
        return DoneStep(index + 1, title, "never begun", "", "open")
    if progress.finished_at is None:
        return DoneStep(index + 1, title, "not finished", progress.message, "open")
    took = words.duration((progress.finished_at - progress.started_at).total_seconds())
    return DoneStep(index + 1, title, took, progress.message, "undone" if progress.undone_at else "done")


def check(figure: Figure) -> Check:
    """Return one figure of the verdict in words."""
    unit = _UNITS.get(figure.unit, figure.unit)
    return Check(
        name=f"{figure.name[:1].upper()}{figure.name[1:]}{f', {unit}' if unit else ''}",
        forecast=_between(figure.low, figure.high),
        seen=_between(figure.seen_low, figure.seen_high),
        fit=figure.fit,
    )


def _figures(stored: StoredPlan) -> Sequence[Figure]:
    return stored.status.verdict.figures if stored.status.verdict else ()


def _between(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return _figure(low) if low == high else f"{_figure(low)}–{_figure(high)}"
    if low is not None:
        return f"at least {_figure(low)}"
    return words.UNKNOWN if high is None else f"at most {_figure(high)}"


def _figure(value: float) -> str:
    """Return three digits, and whole numbers from 1 000 on."""
    return words.number(value) if abs(value) >= 1_000 else f"{value:.3g}"
