"""``Records``: how the forecasts of judged plans did, kept below the data folder for the next forecast."""

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from planner.deployments.plans import stored_plan
from planner.errors import BadInputError, StorageError
from planner.execution.ports import StoredPlan
from planner.storage.track_records import land_records

log = logging.getLogger(__name__)

SOURCE = "records"


class Records:
    """Writes each verdict once: what a plan's status states, whatever executor carried the plan out.

    Every replica writes, as a record is the same whoever writes it, and each may have a folder of its own. What was not
    written, as the disk was full or the process ended, is when the plan is noted again. ``failed`` gets
    failures.
    """

    def __init__(self, data: Path | None, failed: Callable[[str], object]) -> None:
        self._data, self._failed = data, failed
        self._kept: set[str] = set()

    def note(self, manifest: Mapping[str, Any]) -> None:
        """Write the record of a plan object as the API server has it; one that is unreadable is reported elsewhere."""
        is_judged = bool((manifest.get("status") or {}).get("verdict"))
        if self._data is None or not is_judged or manifest["metadata"]["uid"] in self._kept:
            return
        with suppress(BadInputError):
            self.keep(stored_plan(manifest))

    def is_kept(self, stored: StoredPlan) -> bool:
        """Return whether nothing of the plan's verdict is still to be written: the plan may go."""
        verdict = stored.status.verdict
        return self._data is None or verdict is None or not verdict.figures or stored.uid in self._kept

    def keep(self, stored: StoredPlan) -> None:
        """Write the plan's record, if it has a verdict and this process has not.

        Raises nothing: what a full disk keeps from being written is tried again, what no file can hold is not.
        """
        verdict = stored.status.verdict
        if self._data is None or verdict is None or self.is_kept(stored):
            return
        try:
            paths = land_records(self._data, stored.plan, verdict)
        except StorageError as error:
            self._failed(SOURCE)
            log.warning("to be tried again", extra={"part": SOURCE, "plan": stored.name, "error": str(error)})
            return
        except BadInputError as error:
            self._kept.add(stored.uid)
            self._failed(SOURCE)
            log.warning("record cannot be kept", extra={"part": SOURCE, "plan": stored.name, "error": str(error)})
            return
        self._kept.add(stored.uid)
        log.info("record kept", extra={"plan": stored.name, "files": [str(path) for path in paths]})


def check_data(data: Path) -> None:
    """Make the data folder if it is not there. Raises ``BadInputError`` where nothing can be written into it."""
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(data, error.strerror or str(error)) from error
    if not os.access(data, os.W_OK | os.X_OK):
        raise _not_writable(data, "Permission denied")


def _not_writable(data: Path, reason: str) -> BadInputError:
    return BadInputError(
        f"--data {data} cannot be written ({reason}): name a folder on a volume that this account may write to"
    )
