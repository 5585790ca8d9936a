"""Samples on their way to disk and back: a watch's readings are written, landed samples of both layouts are read."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from planner.documents.data import SAMPLE
from planner.errors import BadInputError, DocumentError, why_unread
from planner.model.samples import GroupSample
from planner.storage.landing import GroupKey, LandedSample, samples_of_group, samples_of_reading
from planner.storage.layout import cluster_readings, file_name, time_name
from planner.storage.readings import MOST_READING_BYTES, time_of_reading, write_reading


@dataclass(slots=True)
class ReadingsLander:
    """Lands the samples of one installation's watch below ``data``: a file for each reading, once it is complete.

    Samples of one reading have the same time; the next time, or ``finish``, completes it. A reading of more than
    ``MOST_READING_BYTES`` becomes several files. ``on_landed`` gets group and time of each sample that is on disk.
    """

    data: Path
    on_landed: Callable[[GroupKey, datetime], object] = lambda _key, _at: None
    _documents: dict[GroupKey, bytes] = field(default_factory=dict)
    _at: datetime | None = None
    _size: int = 0

    def add(self, sample: GroupSample) -> None:
        """Take a sample. Raises ``StorageError`` where the reading before it cannot be written.

        Raises ``BadInputError`` for a sample that no document or data folder can hold; the others are kept.
        """
        key, document = (sample.system, sample.cluster, sample.group), SAMPLE.dump(sample)
        file_name(sample.group)  # tidying may give it a file of its own
        if sample.at != self._at or self._size + len(document) > MOST_READING_BYTES:
            self.finish()
        self._at = sample.at
        self._documents[key] = document
        self._size += len(document)

    def finish(self) -> None:
        """Write what was taken since the last file. Raises ``StorageError`` where that fails."""
        documents, self._documents, self._size = self._documents, {}, 0
        if self._at is None or not documents:
            return
        for system, cluster in sorted({key[:2] for key in documents}):
            of_cluster = {key[2]: text for key, text in documents.items() if key[:2] == (system, cluster)}
            write_reading(self.data, system, cluster, self._at, of_cluster)
        for key in documents:
            self.on_landed(key, self._at)


def read_sample(landed: LandedSample) -> GroupSample:
    """Return the sample. Raises ``BadInputError`` where it cannot be read, or is another group's or time's."""
    try:
        document = landed.document()
    except OSError as error:
        raise BadInputError(f"GroupSample file {landed.path} cannot be read: {why_unread(error)}") from error
    where = str(landed.path) if landed.line is None else f"{landed.path}, group {landed.key[2]}"
    sample = SAMPLE.parse(document, where)
    if (sample.system, sample.cluster, sample.group) != landed.key or time_name(sample.at) != landed.time_name:
        raise DocumentError(
            f"{where}: found a sample of {sample.system} {sample.cluster} {sample.group} at {sample.at.isoformat()}, "
            f"expected {' '.join(landed.key)} at {landed.time_name}: the file was moved or edited"
        )
    return sample


def newest_sample(data: Path, key: GroupKey, at: datetime) -> GroupSample | None:
    """Return the newest landed sample of a group taken up to ``at``, ``None`` when there is none."""
    # Names have the time to the millisecond only, so the sample itself has the last word.
    samples = map(read_sample, samples_of_group(data, key, time_name(at)))
    return next((sample for sample in samples if sample.at <= at), None)


def newest_of_groups(
    data: Path, keys: Collection[GroupKey], since: datetime, until: datetime
) -> Mapping[GroupKey, GroupSample]:
    """Return the newest sample of each group among the readings from ``since`` to ``until``.

    A group of which none can be read there is left out. Each file is gone through once, whatever the number of groups.
    """
    newest: dict[GroupKey, GroupSample] = {}
    for system, cluster in sorted({key[:2] for key in keys}):
        of_cluster = {key for key in keys if key[:2] == (system, cluster)}
        for path in _readings_between(cluster_readings(data, system, cluster), time_name(since), time_name(until)):
            for landed in samples_of_reading(path)[0]:
                if landed.key in of_cluster and landed.key not in newest:
                    with suppress(BadInputError):
                        newest[landed.key] = read_sample(landed)
            if of_cluster <= newest.keys():
                break
    return newest


def _readings_between(folder: Path, since: str, until: str) -> list[Path]:
    """Return the readings of that time, the newest first."""
    times = ((time, path) for path in folder.glob("*.jsonl") if (time := time_of_reading(path)) is not None)
    return [path for _, path in sorted((pair for pair in times if since <= pair[0] <= until), reverse=True)]
