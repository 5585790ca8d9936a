"""Put the page together and write it, whole or not at all."""

from collections.abc import Sequence
from pathlib import Path

from planner.advice.answer import Advice
from planner.errors import BadInputError
from planner.model.snapshot import GroupSnapshot
from planner.report import words
from planner.report.beside import beside
from planner.report.bill import bill_section
from planner.report.case import Case
from planner.report.extra import load
from planner.report.grid import grids, key
from planner.report.headline import headline
from planner.report.lanes import costs, lanes
from planner.report.loads import loads
from planner.report.others import others
from planner.report.page import template
from planner.report.provenance import provenance
from planner.report.steps import steps
from planner.report.strategies import strategies
from planner.report.swim import swim
from planner.report.trend import describe_trend, trend
from planner.rollout.explain import describe_idempotence
from planner.rollout.plan import DecisionRecord, RolloutPlan
from planner.simulation.outcome import CandidateOutcome
from planner.storage.files import write_atomically
from planner.verification.track import TrackRecord

TEMPLATE = "page.html.j2"
FILTERS = ("consumers", "moment", "number", "percent", "queues", "rate")


def write_report(
    path: Path,
    snapshot: GroupSnapshot,
    outcomes: Sequence[CandidateOutcome],
    record: DecisionRecord,
    plan: RolloutPlan | None,
    *,
    max_utilisation: float | None = None,
    track: TrackRecord | None = None,
    advice: Advice | None = None,
) -> Path:
    """Write the case as one self-contained HTML page and return its path.

    ``max_utilisation`` is the policy's bound, drawn where it is known, ``track`` what earlier forecasts of the group
    came to, ``advice`` what ``planner advise`` says beside the decision. Raises ``MissingExtraError`` without the
    ``report`` extra, ``BadInputError`` when ``path`` is a folder, ``StorageError`` when it cannot be written.
    """
    return write_page(path, Case(snapshot, outcomes, record, plan, max_utilisation, track, advice=advice))


def write_page(path: Path, case: Case) -> Path:
    """Write the case's page as ``write_report`` does."""
    if path.is_dir():
        raise BadInputError(f"{path} is a folder, expected the name of a file to write: add one, like report.html")
    return write_atomically(path, render(case))


def render(case: Case) -> str:
    """Return the page's HTML; equal cases give equal pages."""
    page = template(TEMPLATE, FILTERS)
    load("vl_convert")
    from planner.report import charts  # noqa: PLC0415  # it needs the extra

    drawn = trend(case)
    crossing = lanes(case)
    html: str = page.render(
        case=case,
        system=case.snapshot.system,
        noun=words.queue_noun(case.snapshot.system),
        headline=headline(case),
        bill=bill_section(case),
        course=drawn,
        told=describe_trend(drawn),
        wide=charts.trend_svg(drawn, charts.WIDE),
        narrow=charts.trend_svg(drawn, charts.NARROW),
        grids=grids(case),
        key=key(case),
        loads=loads(case),
        lanes=crossing,
        swim=swim(crossing) if crossing else None,
        costs=costs(case),
        idempotence=tuple(describe_idempotence(case.plan)) if case.plan else (),
        others=others(case.plan),
        strategies=strategies(case),
        steps=steps(case.plan),
        ground=provenance(case),
        beside=beside(case.advice) if case.advice else None,
    )
    return html
