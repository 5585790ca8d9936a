"""Errors of ours end an app as one sentence, wherever on the cluster they were raised."""

import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from planner import errors
from planner.errors import DefectError, PlannerError, StorageError
from planner.printable import one_line

_RAISED_BY_A_WORKER = re.compile(r"^planner\.(?:\w+\.)*errors\.(\w+): (.+)$", re.MULTILINE)
_UNREADABLE = re.compile(r"\[FAILED_READ_FILE[^]]*\] Encountered error while reading file (\S+?)\.? ", re.DOTALL)
SENTENCE_MARK = "planner: "
"""What the one sentence begins with on stderr, so that it can be found among Spark's lines."""


_STAGE_NOTE = "stage "
"""What the note begins with that names the stage in which an error was raised."""


@contextmanager
def name_stage(name: str) -> Iterator[None]:
    """Let every error that is raised within say which stage of a run failed."""
    try:
        yield
    except Exception as error:
        error.add_note(f"{_STAGE_NOTE}{name}")
        raise


def finish(main: Callable[[], None]) -> None:
    """Run ``main``; an error of ours becomes one sentence on stderr and its exit code.

    Where a stage failed, the sentence begins with its name, and an error of another's is one of those sentences too,
    below its trace.
    """
    try:
        main()
    except Exception as error:
        ours = error if isinstance(error, PlannerError) else _error_of_ours(error)
        if ours is None:
            raise
        _leave(error, ours)


def _error_of_ours(error: Exception) -> PlannerError | None:
    """Return what made a worker fail, else for an error in a stage what it is; ``None`` for any other."""
    # Spark gives an error that it has no class for as it came.
    is_sparks = isinstance(error, PySparkException | Py4JJavaError)
    ours = (error_of_worker(error) or unreadable_file(error)) if is_sparks else None
    if ours is None and _stage_of(error):
        traceback.print_exception(error)
        first = (str(error).splitlines() or ["without a word"])[0]
        return DefectError(f"{type(error).__name__}: {first}: look at Spark's lines above, then run the task again")
    return ours


def _stage_of(error: BaseException) -> str:
    """Return how a sentence on the error begins: with the stage that failed, where one did."""
    notes = [note for note in getattr(error, "__notes__", ()) if note.startswith(_STAGE_NOTE)]
    return f"{notes[0]}: " if notes else ""


def error_of_worker(error: BaseException) -> PlannerError | None:
    """Return the planner's error that made a Python worker fail, ``None`` when it was something else.

    Spark passes the worker's traceback on as text only.
    """
    matches = _RAISED_BY_A_WORKER.findall(str(error))
    if not matches:
        return None
    name, sentence = matches[-1]
    kind = getattr(errors, name, PlannerError)
    return kind(sentence) if issubclass(kind, PlannerError) else PlannerError(sentence)


def unreadable_file(error: BaseException) -> StorageError | None:
    """Return an error that names the Parquet file which Spark could not read, ``None`` when it was something else."""
    match = _UNREADABLE.search(str(error))
    if match is None:
        return None
    return StorageError(
        f"{match[1]} cannot be read as Parquet: it is cut off, damaged or gone; bring it back from a backup, or move "
        "it away and run the history app with --rebuild"
    )


def _leave(error: Exception, ours: PlannerError) -> None:
    sys.stderr.write(f"{SENTENCE_MARK}{_stage_of(error)}{one_line(str(ours))}\n")
    sys.stderr.flush()
    raise SystemExit(ours.exit_code) from error
