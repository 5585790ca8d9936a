"""What the answer stands on: how complete and old the data is, what nobody can know, and the exact documents."""

from dataclasses import dataclass

from planner import __version__
from planner.documents.plan import PLAN
from planner.report import words
from planner.report.case import Case
from planner.report.loads import sentence

MOST_PROBLEMS = 50
"""Problems listed one by one; the rest is shown as a number."""


@dataclass(frozen=True, slots=True)
class DataRow:
    """One section of the data; ``share`` is from 0 to 100, ``is_partial`` when something is missing."""

    name: str
    age: str
    completeness: str
    share: float
    is_partial: bool
    note: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """The last section. ``earlier`` says how the group's earlier forecasts did, where these were read."""

    unknowns: tuple[str, ...]
    earlier: tuple[str, ...]
    problems: tuple[str, ...]
    more_problems: int
    parts: tuple[DataRow, ...]
    terms: tuple[tuple[str, str], ...]
    documents: tuple[tuple[str, str], ...]


def provenance(case: Case) -> Provenance:
    """Return how good the data is and which documents this page was made from."""
    snapshot = case.snapshot
    unknowns = case.plan.forecast.unknowns if case.plan else case.chosen.unknowns if case.chosen else ()
    return Provenance(
        unknowns=tuple(sentence(unknown) for unknown in unknowns),
        earlier=case.track.lines if case.track else (),
        problems=tuple(sentence(problem) for problem in snapshot.problems[:MOST_PROBLEMS]),
        more_problems=max(0, len(snapshot.problems) - MOST_PROBLEMS),
        parts=tuple(
            DataRow(
                name=section.name,
                age=words.duration(section.age_s),
                completeness=words.percent(section.completeness),
                share=100.0 * section.completeness,
                is_partial=section.completeness < 1.0,
                note=section.note,
            )
            for section in snapshot.parts
        ),
        terms=_terms(case),
        documents=_documents(case),
    )


def _terms(case: Case) -> tuple[tuple[str, str], ...]:
    snapshot = case.snapshot
    capacity = snapshot.capacity
    order = {None: words.UNKNOWN, True: "in order", False: "concurrently"}[snapshot.orderly]
    return (
        ("Allocation strategy", f"{snapshot.strategy or words.UNKNOWN}: {snapshot.strategy_source}"),
        (
            "One consumer can do",
            f"{words.rate(capacity.messages_per_s)}: {capacity.source}" if capacity else words.UNKNOWN,
        ),
        ("Rates from the last", words.duration(snapshot.window_s)),
        ("Consume threads", words.UNKNOWN if snapshot.threads is None else str(snapshot.threads)),
        ("Messages are consumed", order),
    )


def _documents(case: Case) -> tuple[tuple[str, str], ...]:
    record, plan = case.record, case.plan
    without = "no plan: the answer is hold" if case.is_hold else "no plan at hand"
    return (
        ("Policy", record.policy),
        ("Decided", words.moment(record.decision.decided_at)),
        ("Plan may be applied until", words.moment(plan.valid_until) if plan else without),
        ("Snapshot taken", words.moment(case.snapshot.at)),
        ("Snapshot digest", record.snapshot.digest),
        ("Plan digest", PLAN.digest(plan) if plan else without),
        ("Planner version", __version__),
    )
