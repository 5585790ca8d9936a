"""How forecasts did, kept below the data folder for the next one: one file a plan, whatever executor carried it out."""

from datetime import datetime
from pathlib import Path
from typing import Final

from planner.documents.data import CALIBRATION
from planner.documents.format import DIGEST_PREFIX
from planner.documents.plan import PLAN
from planner.errors import BadInputError, DocumentError
from planner.rollout.plan import GroupRef, RolloutPlan
from planner.storage.files import write_atomically
from planner.storage.layout import calibration_folder, is_time_name, time_name
from planner.verification.calibration import CalibrationRecord, calibration_records
from planner.verification.track import LAST, TrackRecord, track_record
from planner.verification.verdict import Verdict

_DIGITS: Final = 12
"""Of a plan's digest in a record's name."""


def land_records(data: Path, plan: RolloutPlan, verdict: Verdict) -> tuple[Path, ...]:
    """Write how the plan's forecast did for each of its groups; return the files, its own group's first.

    To write them again gives the same ones.

    The name holds the time and the plan's digest: two plans of one group may be judged within one millisecond. A
    record that an earlier version has kept under the time alone stays where it is.
    """
    digits = PLAN.digest(plan).removeprefix(DIGEST_PREFIX)[:_DIGITS]
    return tuple(_land(data, record, digits) for record in calibration_records(plan, verdict))


def _land(data: Path, record: CalibrationRecord, digits: str) -> Path:
    group, at = record.group, time_name(record.judged_at)
    folder, content = calibration_folder(data, group.system, group.cluster, group.group), CALIBRATION.dump(record)
    older = folder / f"{at}.json"
    if older.is_file() and older.read_bytes() == content:
        return older
    return write_atomically(folder / f"{at}-{digits}.json", content)


def read_records(
    data: Path, group: GroupRef, until: datetime | None = None, last: int | None = None
) -> tuple[CalibrationRecord, ...]:
    """Return how the group's forecasts did, oldest first; none where none was kept.

    Those judged after ``until`` are left out, and all but the ``last`` ones. A file that is being written has another
    name, and is not seen. Raises ``BadInputError`` for a data folder that is not there, ``DocumentError`` for a file
    that is no record, or one of another group.
    """
    if not data.is_dir():
        raise BadInputError(f"data folder {data} is not there: name the one that planner apply --data writes to")
    folder = calibration_folder(data, group.system, group.cluster, group.group)
    files = sorted(folder.glob("*.json"))
    for path in files:
        if not is_time_name(_at(path)):
            raise DocumentError(f"{path}: found among records of forecasts, but not named like one: move it elsewhere")
    judged = [path for path in files if until is None or _at(path) <= time_name(until)]
    return tuple(_record(path, group) for path in (judged if last is None else judged[-last:]))


def read_track(data: Path, group: GroupRef, until: datetime) -> TrackRecord:
    """Return what the group's last forecasts came to that were judged until then. Raises as ``read_records`` does."""
    return track_record(group.group, read_records(data, group, until, LAST))


def _at(path: Path) -> str:
    """Return when a record's forecast was judged, as its file's name has it."""
    return path.stem.partition("-")[0]


def _record(path: Path, group: GroupRef) -> CalibrationRecord:
    record = CALIBRATION.read(path)
    if record.group != group:
        recorded = record.group
        raise DocumentError(
            f"{path}: found a record of group {recorded.group} on {recorded.system} cluster {recorded.cluster}, "
            f"expected group {group.group} on {group.system} cluster {group.cluster}: move it to that group's folder"
        )
    return record
