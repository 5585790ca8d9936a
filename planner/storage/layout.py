"""Where things lie below one data folder, by group and time.

::

    samples/rocketmq/<cluster>/<group>/20261121T101500.000Z.json   one look at one group
    history/day=2026-11-21/hour=10/*.parquet                       the lag history (Spark)
    runs/<run>/snapshots/<policy>.json                             what is true, one file a policy
    runs/<run>/outcomes/*.parquet                                  candidates (Spark)
    runs/<run>/decisions/<policy>.json                             what was decided
    runs/<run>/<policy>/                                           snapshot, plan or decision, report
"""

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from planner.model.samples import GroupSample


def file_name(name: str) -> str:
    """Return ``name`` as one path segment; names of groups may hold ``%`` and ``|``."""
    return quote(name, safe="")


def time_name(at: datetime) -> str:
    """Return the time in UTC as a name that sorts by time, to the millisecond."""
    in_utc = at.astimezone(UTC)
    return f"{in_utc:%Y%m%dT%H%M%S}.{in_utc.microsecond // 1000:03d}Z"


def sample_path(data: Path, sample: GroupSample) -> Path:
    """Return where a sample of one group and time belongs."""
    folder = data / "samples" / sample.system / file_name(sample.cluster) / file_name(sample.group)
    return folder / f"{time_name(sample.at)}.json"
