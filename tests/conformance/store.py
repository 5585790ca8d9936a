"""The committed observations: one file a system, one record a line, only ever added to."""

import os
from collections.abc import Iterable
from pathlib import Path

from tests.conformance.record import Record, read_record

OBSERVATIONS = Path(__file__).with_name("observations")


class Store:
    """Records of one system. A half line, left by a run that was killed, is not read, and cut off by the next one."""

    def __init__(self, system: str, directory: Path = OBSERVATIONS) -> None:
        self.path = directory / f"{system}.jsonl"

    def records(self) -> list[Record]:
        """Return all records, oldest first."""
        return [read_record(line) for line in self._whole().decode().splitlines()]

    def ids(self) -> frozenset[str]:
        """Return which transitions are there already."""
        return frozenset(record.id for record in self.records())

    def add(self, records: Iterable[Record]) -> None:
        """Append records; they are on disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = len(self._whole())
        with self.path.open("ab") as file:
            file.truncate(whole)
            file.write("".join(f"{record.line()}\n" for record in records).encode())
            file.flush()
            os.fsync(file.fileno())

    def _whole(self) -> bytes:
        text = self.path.read_bytes() if self.path.exists() else b""
        return text[: text.rfind(b"\n") + 1]


def all_records(directory: Path = OBSERVATIONS) -> list[Record]:
    """Return the records of every system, systems in the order of their names."""
    return [record for path in sorted(directory.glob("*.jsonl")) for record in Store(path.stem, directory).records()]
