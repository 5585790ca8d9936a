"""The page of a run: what was seen from second to second, and what each plan of it forecast, did and found."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from planner import __version__
from planner.errors import BadInputError
from planner.execution.ports import StoredPlan
from planner.model.queues import Queue
from planner.report.extra import load
from planner.report.page import template
from planner.storage.files import write_atomically

TEMPLATE = "run.html.j2"
FILTERS = ("duration", "moment", "number", "messages")


@dataclass(frozen=True, slots=True)
class Observation:
    """An observation of group and Deployment. ``arrived`` and ``consumed`` count messages since the first was sent.

    ``lag`` is messages between the two as the brokers have them stored. ``owners`` has each queue's owners as the
    members report them. ``replicas`` are asked for, ``ready`` are the pods that are ready.
    """

    at: datetime
    arrived: int
    consumed: int
    lag: int
    members: tuple[str, ...]
    owners: Mapping[Queue, tuple[str, ...]]
    replicas: int
    ready: int


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happened to the run from outside, as a person would say it: ``load rises``."""

    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """All that the page shows. ``real`` and ``stand_ins`` say in sentences what was real and what only stood for it."""

    sights: tuple[Observation, ...]
    plans: tuple[StoredPlan, ...]
    notes: tuple[Note, ...]
    real: tuple[str, ...]
    stand_ins: tuple[str, ...]

    @property
    def begins(self) -> datetime:
        """The time of the first observation."""
        return self.sights[0].at

    @property
    def ends(self) -> datetime:
        """The time of the last observation."""
        return self.sights[-1].at


def write_run(path: Path, run: Run) -> Path:
    """Write the run as one self-contained HTML page and return its path.

    Raises ``MissingExtraError`` without the ``report`` extra, ``BadInputError`` when ``path`` is a folder or when the
    run was never observed, ``StorageError`` when it cannot be written.
    """
    if path.is_dir():
        raise BadInputError(f"{path} is a folder, expected the name of a file to write: add one, like index.html")
    return write_atomically(path, render(run))


def render(run: Run) -> str:
    """Return the page's HTML; equal runs give equal pages."""
    if len(run.sights) < 2:
        raise BadInputError(f"the run was looked at {len(run.sights)} times, expected two or more: watch it longer")
    page = template(TEMPLATE, FILTERS)
    load("vl_convert")
    from planner.report import run_charts, run_views  # noqa: PLC0415  # they need the extra

    html: str = page.render(
        run=run,
        head=run_views.headline(run),
        facts=run_views.facts(run),
        told=run_views.describe_run(run),
        wide=run_charts.run_svg(run, run_charts.WIDE),
        narrow=run_charts.run_svg(run, run_charts.NARROW),
        ownership=run_views.ownership_of(run),
        plans=[run_views.plan_section(number, stored) for number, stored in enumerate(run.plans, start=1)],
        version=__version__,
    )
    return html
