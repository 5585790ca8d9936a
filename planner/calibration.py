"""How forecasts did, kept below the data folder for the next one: one file a plan, whatever executor carried it out."""

from datetime import datetime
from pathlib import Path

from planner.documents.data import CALIBRATION
from planner.errors import BadInputError, DocumentError
from planner.rollout.plan import GroupRef, RolloutPlan
from planner.storage.files import write_atomically
from planner.storage.layout import calibration_folder, is_time_name, time_name
from planner.verification.calibration import CalibrationRecord, calibration_record
from planner.verification.track import LAST, TrackRecord, track_record
from planner.verification.verdict import Verdict


def land_record(data: Path, plan: RolloutPlan, verdict: Verdict) -> Path:
    """Write how the plan's forecast did, and return the file; to write it again gives the same one."""
    group = plan.group
    folder = calibration_folder(data, group.system, group.cluster, group.group)
    return write_atomically(
        folder / f"{time_name(verdict.judged_at)}.json", CALIBRATION.dump(calibration_record(plan, verdict))
    )


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
        if not is_time_name(path.stem):
            raise DocumentError(f"{path}: found among records of forecasts, but not named like one: move it elsewhere")
    judged = [path for path in files if until is None or path.stem <= time_name(until)]
    return tuple(_record(path, group) for path in (judged if last is None else judged[-last:]))


def read_track(data: Path, group: GroupRef, until: datetime) -> TrackRecord:
    """Return what the group's last forecasts came to that were judged until then. Raises as ``read_records`` does."""
    return track_record(group.group, read_records(data, group, until, LAST))


def _record(path: Path, group: GroupRef) -> CalibrationRecord:
    record = CALIBRATION.read(path)
    if record.group != group:
        recorded = record.group
        raise DocumentError(
            f"{path}: found a record of group {recorded.group} on {recorded.system} cluster {recorded.cluster}, "
            f"expected group {group.group} on {group.system} cluster {group.cluster}: move it to that group's folder"
        )
    return record
