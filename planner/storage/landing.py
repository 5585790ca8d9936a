"""Sample files that have landed below the data folder and are not yet packed into the history."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from planner.errors import DocumentError
from planner.storage.layout import is_time_name, name_of_file, time_of_name

GroupKey = tuple[str, str, str]
"""System, cluster, group."""


@dataclass(frozen=True, slots=True)
class LandedSample:
    """One sample file, as far as its path tells."""

    path: Path

    @property
    def key(self) -> GroupKey:
        """Whom it speaks of."""
        *_, system, cluster, group, _ = self.path.parts
        return name_of_file(system), name_of_file(cluster), name_of_file(group)

    @property
    def time_name(self) -> str:
        """When it was taken, to the millisecond, as a name that sorts by time."""
        return self.path.stem

    @property
    def day(self) -> date:
        """The day (UTC) on which it was taken."""
        return time_of_name(self.path.stem).date()


def landed_samples(samples: Path) -> Iterator[LandedSample]:
    """Yield the sample files of all groups by path. Raises ``DocumentError`` for a file that is not named like one."""
    for path in sorted(samples.glob("*/*/*/*.json")):
        if path.name.startswith("."):
            continue
        if not is_time_name(path.stem):
            raise DocumentError(f"{path}: found among samples, but not named like one: move it elsewhere")
        yield LandedSample(path)
