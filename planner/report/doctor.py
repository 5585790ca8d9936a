"""The doctor's page: all groups at a glance, then each sick one with the evidence and a drawing of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from planner import __version__
from planner.diagnosis.finding import Diagnosis, DoctorReport, Severity
from planner.diagnosis.group_evidence import GroupEvidence
from planner.errors import BadInputError
from planner.model.queues import Queue
from planner.report import words
from planner.report.consumers import Mark, Marks
from planner.report.extra import load
from planner.report.loads import sentence
from planner.report.page import template
from planner.storage.files import write_atomically

TEMPLATE = "doctor.html.j2"
FILTERS = ("moment", "number", "duration", "queues", "messages")

MOST_LISTED = 200
"""Groups in the table; the healthy ones beyond are shown as a number."""

MOST_DETAILED = 40
"""Sick groups shown one by one, the worst first."""

MOST_CELLS = 256
MOST_BARS = 16
"""Queues drawn and members compared for each group."""

LINE_WIDTH, LINE_HEIGHT = 240, 48

SEVERITIES = {Severity.ERROR: "errors", Severity.WARNING: "warnings", Severity.NOTICE: "notices"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One queue: its owners, and what is wrong with it: ``orphan``, ``doubled``, ``named`` (a finding), or nothing."""

    number: int
    marks: tuple[Mark, ...]
    trouble: str
    tip: str


@dataclass(frozen=True, slots=True)
class Row:
    """The queues of one topic on one broker."""

    topic: str
    broker: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """One member's queues and messages per second; shares of the largest, 0 to 100."""

    mark: Mark
    is_named: bool
    queues: int
    queue_share: float
    rate: str
    rate_share: float


@dataclass(frozen=True, slots=True)
class Line:
    """The group's lag over the samples as points of an SVG polyline, with its first and last value in words."""

    points: str
    first: str
    last: str
    most: str


@dataclass(frozen=True, slots=True)
class GroupSection:
    """One sick group: its diagnosis and drawings."""

    anchor: str
    diagnosis: Diagnosis
    rows: tuple[Row, ...]
    left_out: int
    loads: tuple[Load, ...]
    has_rates: bool
    more_members: int
    line: Line | None


@dataclass(frozen=True, slots=True)
class Head:
    """The first half minute."""

    head: str
    rest: str
    facts: tuple[tuple[str, int, str, str], ...]


def check_page(path: Path) -> None:
    """Raise ``MissingExtraError`` without the ``report`` extra, ``BadInputError`` when ``path`` is a folder."""
    load("jinja2")
    if path.is_dir():
        raise BadInputError(f"{path} is a folder, expected the name of a file to write: add one, like doctor.html")


def write_doctor_page(path: Path, report: DoctorReport, all_evidence: Iterable[GroupEvidence]) -> Path:
    """Write the report as one self-contained HTML page and return its path.

    Raises as ``check_page`` does, and ``StorageError`` when it cannot be written.
    """
    check_page(path)
    return write_atomically(path, render_doctor(report, all_evidence))


def render_doctor(report: DoctorReport, all_evidence: Iterable[GroupEvidence]) -> str:
    """Return the page's HTML; equal reports give equal pages."""
    page = template(TEMPLATE, FILTERS, sentence=sentence)
    by_group = {(evidence.newest.cluster, evidence.group): evidence for evidence in all_evidence}
    sick = [diagnosis for diagnosis in report.groups if diagnosis.findings]
    sections = [
        _section(f"g{number}", diagnosis, by_group[diagnosis.cluster, diagnosis.group])
        for number, diagnosis in enumerate(sick[:MOST_DETAILED])
    ]
    html: str = page.render(
        report=report,
        head=_head(report),
        listed=report.groups[:MOST_LISTED],
        anchors={(section.diagnosis.cluster, section.diagnosis.group): section.anchor for section in sections},
        more_listed=len(report.groups) - MOST_LISTED,
        views=sections,
        more_sick=len(sick) - len(sections),
        gaps=gaps(report.groups),
        version=__version__,
    )
    return html


def _head(report: DoctorReport) -> Head:
    total, healthy = len(report.groups), report.count(None) - report.undecided
    bad = report.count(Severity.ERROR)
    counts = {severity: sum(finding.severity is severity for finding in report.findings) for severity in Severity}
    if total == 1:
        group = report.groups[0]
        well = "has no finding yet" if group.is_undecided else "is healthy"
        head = f"{group.group} {well}" if not group.findings else group.findings[0].title
        rest = "" if not group.findings else group.findings[0].consequence
    else:
        head = f"{bad} of {total} groups have errors" if bad else f"No errors in {total} groups"
        rest = f"{healthy} are healthy." if healthy else ""
    notes = {
        Severity.ERROR: "messages are lost, come twice, or wait for nobody",
        Severity.WARNING: "capacity is wasted, or the next change costs more than it has to",
        Severity.NOTICE: "good to know before you plan",
    }
    facts = tuple((words_, counts[severity], notes[severity], str(severity)) for severity, words_ in SEVERITIES.items())
    return Head(head, f"{rest[:1].upper()}{rest[1:]}", facts)


def _section(anchor: str, diagnosis: Diagnosis, evidence: GroupEvidence) -> GroupSection:
    named = {name for finding in diagnosis.findings for name in finding.about}
    marks = Marks(sorted(set(evidence.clients)), ())
    queues = evidence.queues
    loads = _loads(evidence, marks, named)
    return GroupSection(
        anchor=anchor,
        diagnosis=diagnosis,
        rows=_rows(evidence, marks, named, queues[:MOST_CELLS]),
        left_out=max(0, len(queues) - MOST_CELLS),
        loads=tuple(loads[:MOST_BARS]),
        has_rates=bool(evidence.arrival_rates),
        more_members=max(0, len(loads) - MOST_BARS),
        line=_line(evidence),
    )


def _rows(evidence: GroupEvidence, marks: Marks, named: set[str], queues: Sequence[Queue]) -> tuple[Row, ...]:
    rows: dict[tuple[str, ...], list[Cell]] = {}
    for queue in queues:
        rows.setdefault(queue.place, []).append(_cell(evidence, marks, named, queue))
    return tuple(
        Row(location[0], location[1] if len(location) > 1 else "", tuple(cells)) for location, cells in rows.items()
    )


def _cell(evidence: GroupEvidence, marks: Marks, named: set[str], queue: Queue) -> Cell:
    owners = () if evidence.is_broadcasting else evidence.owners.get(queue, ())
    trouble = "named" if str(queue) in named else ""
    if evidence.has_owners and not evidence.silent and not owners:
        trouble = "orphan"
    elif len(owners) > 1 and not evidence.is_pop:
        trouble = "doubled"
    entry = evidence.offsets.get(queue)
    lag = "lag unknown" if entry is None or entry.lag is None else f"lag {words.number(entry.lag)}"
    flow = evidence.arrival_rates.get(queue)
    rate_note = f", {words.rate(flow)}" if flow is not None else ""
    return Cell(
        number=queue.number,
        marks=tuple(marks[owner] for owner in owners[:2]),
        trouble=trouble,
        tip=f"{queue}: {', '.join(owners) or 'no owner'}; {lag}{rate_note}",
    )


def _loads(evidence: GroupEvidence, marks: Marks, named: set[str]) -> list[Load]:
    data = set(evidence.queues)
    owned = {
        client: [queue for queue in data if client in evidence.owners.get(queue, ())] for client in evidence.clients
    }
    rates = {
        client: sum(evidence.arrival_rates.get(queue, 0.0) for queue in queues) for client, queues in owned.items()
    }
    most_queues = max((len(queues) for queues in owned.values()), default=0) or 1
    most_rate = max(rates.values(), default=0.0) or 1.0
    return [
        Load(
            mark=marks[client],
            is_named=client in named,
            queues=len(queues),
            queue_share=100 * len(queues) / most_queues,
            rate=words.per_second(rates[client]),
            rate_share=100 * rates[client] / most_rate,
        )
        for client, queues in sorted(owned.items())
    ]


def _line(evidence: GroupEvidence) -> Line | None:
    """Return the group's lag at each sample that knows it of every queue; ``None`` with fewer than two of them."""
    data = set(evidence.queues)
    start = evidence.samples[0].at
    points = []
    for sample in evidence.samples:
        lags = [entry.lag for entry in sample.offsets if entry.queue in data]
        known = [lag for lag in lags if lag is not None]
        if lags and len(known) == len(lags):
            points.append(((sample.at - start).total_seconds(), sum(known)))
    if len(points) < 2 or evidence.watched_s <= 0:
        return None
    most = max(lag for _, lag in points)
    drawn = " ".join(
        f"{LINE_WIDTH * at / evidence.watched_s:.1f},{LINE_HEIGHT - 4 - (LINE_HEIGHT - 8) * lag / (most or 1):.1f}"
        for at, lag in _thin(points)
    )
    return Line(drawn, words.number(points[0][1]), words.number(points[-1][1]), words.number(most))


def _thin(points: Sequence[tuple[float, int]], most: int = 120) -> Sequence[tuple[float, int]]:
    step = -(-len(points) // most)
    return [*points[:-1:step], points[-1]]


def gaps(groups: Sequence[Diagnosis]) -> list[tuple[str, str, str]]:
    """Return what was not checked as (checks, groups, reason), equal reasons together, the widest first."""
    by_reason: dict[str, dict[str, list[str]]] = {}
    for diagnosis in groups:
        for gap in diagnosis.unchecked:
            by_reason.setdefault(gap.reason, {}).setdefault(diagnosis.group, []).append(gap.code)
    lines = []
    for reason, by_group in by_reason.items():
        codes = sorted({code for group_codes in by_group.values() for code in group_codes})
        names = next(iter(by_group)) if len(by_group) == 1 else f"{len(by_group)} groups"
        lines.append((len(by_group), (", ".join(codes), names, reason)))
    return [line for _, line in sorted(lines, key=lambda entry: (-entry[0], entry[1]))]
