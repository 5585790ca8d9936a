"""Recorded groups of known truth that lie in the repository, by name: samples and how often they were taken."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from planner.model.samples import GroupSample
from planner.sources.capture import open_capture
from tests.matrix.cells import Cell
from tests.matrix.truth import Truth, truth

ROOT = Path(__file__).parents[1]
RECORDINGS = ROOT / "tests/contract/recordings"
CELLS = RECORDINGS / "matrix"
MEMBERS = ("kafka-members", "rocketmq-members")
DAYS = ("two-brokers-day", "kafka-restart-overload")


@dataclass(frozen=True)
class Recording:
    """One group's samples, oldest first; ``cell`` and ``truth`` are known of the cells of the matrix alone."""

    samples: tuple[GroupSample, ...]
    every_s: float
    cell: Cell | None = None
    truth: Truth | None = None

    @property
    def watched_s(self) -> float:
        """Seconds from the first sample to the last."""
        return (self.samples[-1].at - self.samples[0].at).total_seconds()


def cell_names() -> list[str]:
    """Return the names of the matrix cells whose samples are kept."""
    return sorted(folder.name for folder in CELLS.iterdir())


@cache
def cell(name: str) -> Recording:
    """Return a kept cell."""
    kept = json.loads((CELLS / name / "truth.json").read_text(encoding="utf-8"))
    of = Cell(**kept["cell"])
    (recording,) = (recorded for _, recorded in _groups(CELLS / name))
    return Recording(recording.samples, recording.every_s, of, truth(of, kept["consumed_by_client"]))


@cache
def day(name: str) -> Recording:
    """Return the group of an example's capture."""
    (recording,) = (recorded for _, recorded in _groups(ROOT / "examples/captures" / name))
    return recording


@cache
def members(capture: str) -> dict[str, Recording]:
    """Return the groups of a capture of several, by name."""
    return dict(_groups(RECORDINGS / capture))


def _groups(folder: Path) -> Iterator[tuple[str, Recording]]:
    capture = open_capture(folder)
    by_group: dict[str, list[GroupSample]] = {}
    for sample in capture.samples():
        by_group.setdefault(sample.group, []).append(sample)
    for group, samples in by_group.items():
        yield group, Recording(tuple(samples), capture.header.sample_every_s)
