"""Errors of ours end an app as one sentence, wherever on the cluster they were raised."""

import re
import sys
from collections.abc import Callable

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from planner import errors
from planner.errors import PlannerError, StorageError
from planner.printable import one_line

_RAISED_BY_A_WORKER = re.compile(r"^planner\.(?:\w+\.)*errors\.(\w+): (.+)$", re.MULTILINE)
_UNREADABLE = re.compile(r"\[FAILED_READ_FILE[^]]*\] Encountered error while reading file (\S+?)\.? ", re.DOTALL)
SENTENCE_MARK = "planner: "
"""What the one sentence begins with on stderr, so that it can be found among Spark's lines."""


def finish(main: Callable[[], None]) -> None:
    """Run ``main``; an error of ours becomes one sentence on stderr and its exit code."""
    try:
        main()
    except PlannerError as error:
        _leave(error)
    except (PySparkException, Py4JJavaError) as error:  # Spark gives what it has no class for as it came
        ours = error_of_worker(error) or unreadable_file(error)
        if ours is None:
            raise
        _leave(ours)


def error_of_worker(error: BaseException) -> PlannerError | None:
    """Return the planner's error that made a Python worker fail, ``None`` when it was something else.

    Spark passes the worker's traceback on as text only.
    """
    found = _RAISED_BY_A_WORKER.findall(str(error))
    if not found:
        return None
    name, sentence = found[-1]
    kind = getattr(errors, name, PlannerError)
    return kind(sentence) if issubclass(kind, PlannerError) else PlannerError(sentence)


def unreadable_file(error: BaseException) -> StorageError | None:
    """Return an error that names the Parquet file which Spark could not read, ``None`` when it was something else."""
    found = _UNREADABLE.search(str(error))
    if found is None:
        return None
    return StorageError(
        f"{found[1]} cannot be read as Parquet: it is cut off, damaged or gone; bring it back from a backup, or move "
        "it away and run the history app with --rebuild"
    )


def _leave(error: PlannerError) -> None:
    sys.stderr.write(f"{SENTENCE_MARK}{one_line(str(error))}\n")
    sys.stderr.flush()
    raise SystemExit(error.exit_code) from error
