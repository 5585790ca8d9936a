"""A run as its stages know it: its folders and times, what stages tell each other, and what came of each policy."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypedDict, cast

from planner.errors import BadInputError
from planner.storage.files import write_atomically
from planner.storage.layout import RunFolder

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


def keep_results(run: RunFolder, decided: Sequence[Decided]) -> None:
    """Write what came of every policy into the run's own folder, for ``read_results``."""
    write_atomically(run.results, json.dumps(list(decided), indent=2) + "\n")


def read_results(run: RunFolder) -> Sequence[Decided]:
    """Return what came of every policy, by its name. Raises ``BadInputError`` where no plan stage has ended."""
    if not run.results.exists():
        raise BadInputError(f"{run.results} does not exist: it is what the stage plan leaves, so run that first")
    return cast("list[Decided]", json.loads(run.results.read_text(encoding="utf-8")))


def add_set_aside(run: RunFolder, sentences: Mapping[str, str]) -> None:
    """Add why files were set aside, by path, to what the run's own folder has of it, for ``read_set_aside``.

    Nothing where there is no such folder: an app that runs by itself prints them alone.
    """
    if sentences and run.path.exists():
        known = {**read_set_aside(run), **sentences}
        write_atomically(run.set_aside, json.dumps(known, indent=2, sort_keys=True) + "\n")


def read_set_aside(run: RunFolder) -> Mapping[str, str]:
    """Return why files were set aside in the run, by path."""
    if not run.set_aside.exists():
        return {}
    return cast("dict[str, str]", json.loads(run.set_aside.read_text(encoding="utf-8")))
