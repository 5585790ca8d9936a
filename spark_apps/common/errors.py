"""Errors of ours end an app as one sentence, wherever on the cluster they were raised."""

import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from planner import errors
from planner.errors import DefectError, PlannerError, StorageError
from planner.text.printable import one_line

_RAISED_BY_A_WORKER = re.compile(r"^planner\.(?:\w+\.)*errors\.(\w+): (.+)$", re.MULTILINE)
_UNREADABLE = re.compile(r"\[FAILED_READ_FILE[^]]*\] Encountered error while reading file (\S+?)\.? ", re.DOTALL)
_NO_ROOM = re.compile("No space left on device|Disk quota exceeded|File too large")
"""The kernel's words for ENOSPC, EDQUOT and EFBIG, as Java passes them on."""
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


def sentence_on(error: Exception) -> str:
    """Return in one line what was wrong, of an error of another's below its trace on stderr."""
    ours = error if isinstance(error, PlannerError) else _error_of_ours(error)
    return one_line(str(ours) if ours else _text(error))


def _error_of_ours(error: Exception) -> PlannerError | None:
    """Return what made a worker fail, else for an error in a stage what it is; ``None`` for any other."""
    # Spark gives an error that it has no class for as it came.
    is_sparks = isinstance(error, PySparkException | Py4JJavaError)
    ours = (error_of_worker(error) or unreadable_file(error) or full_disk(error)) if is_sparks else None
    ours = ours or lost_java(error)
    if ours is None and _stage_of(error):
        traceback.print_exception(error)
        first = (_text(error).splitlines() or ["without a word"])[0]
        return DefectError(f"{type(error).__name__}: {first}: look at Spark's lines above, then run the task again")
    return ours


def _text(error: BaseException) -> str:
    """Return the error's own text; one from Java asks Java for it, which may have ended by then."""
    try:
        return str(error)
    except (ConnectionError, Py4JError):
        return _NO_ANSWER


def _stage_of(error: BaseException) -> str:
    """Return how a sentence on the error begins: with the stage that failed, where one did."""
    notes = [note for note in getattr(error, "__notes__", ()) if note.startswith(_STAGE_NOTE)]
    return f"{notes[0]}: " if notes else ""


def error_of_worker(error: BaseException) -> PlannerError | None:
    """Return the planner's error that made a Python worker fail, ``None`` when it was something else.

    Spark passes the worker's traceback on as text only.
    """
    matches = _RAISED_BY_A_WORKER.findall(_text(error))
    if not matches:
        return None
    name, sentence = matches[-1]
    kind = getattr(errors, name, PlannerError)
    return kind(sentence) if issubclass(kind, PlannerError) else PlannerError(sentence)


def unreadable_file(error: BaseException) -> StorageError | None:
    """Return an error that names the Parquet file which Spark could not read, ``None`` when it was something else."""
    match = _UNREADABLE.search(_text(error))
    if match is None:
        return None
    return unreadable_parquet(match[1])


REMEDY = (
    "bring it back from a backup, or move it away and run the app that writes it again (the history app with --rebuild)"
)
"""What to do about a Parquet file that cannot be used."""


def unreadable_parquet(name: str, or_else: str = "") -> StorageError:
    """Return an error that names the Parquet file."""
    return StorageError(f"{name} cannot be read as Parquet: it is cut off, damaged or gone{or_else}; {REMEDY}")


def full_disk(error: BaseException) -> StorageError | None:
    """Return an error that says why nothing more can be written, ``None`` when it was something else."""
    match = _NO_ROOM.search(_text(error))
    if match is None:
        return None
    return StorageError(
        f"Spark cannot write ({match[0]}): make room where the history lies and in Spark's own folder "
        "(spark.local.dir), then run again: nothing is lost"
    )


_NO_ANSWER = "Answer from Java side is empty"
_LOST = re.compile(
    rf"SparkContext was shut down|ExecutorLostFailure|java\.lang\.OutOfMemoryError|{_NO_ANSWER}"
    r"|\AAn error occurred while calling \S+\Z"  # Py4J's of a call without an answer: Java's own have a trace
)
"""Spark's and Py4J's words for a Java process that ended while it was asked: the driver's or an executor's."""


def lost_java(error: BaseException) -> StorageError | None:
    """Return an error that says what to do where a Java process of Spark ended, ``None`` when it was something else.

    The lengths of runs in a Parquet page are its writer's word, so a file of 150 bytes can take any amount of memory.
    Java ends then (``SparkUncaughtExceptionHandler``), and who asks it finds nobody.
    """
    is_gone = isinstance(error, ConnectionError | Py4JNetworkError)
    if not is_gone and not (isinstance(error, Py4JError | PySparkException) and _LOST.search(_text(error))):
        return None
    return StorageError(
        "a Java process of Spark ended while it worked, most often for lack of memory: give it more "
        "(spark.driver.memory, spark.executor.memory) and run again; where it ends again, a Parquet file states more "
        "than any memory holds: move away those of the history and of this run that the planner did not write"
    )


def _leave(error: Exception, ours: PlannerError) -> None:
    sys.stderr.write(f"{SENTENCE_MARK}{_stage_of(error)}{one_line(str(ours))}\n")
    sys.stderr.flush()
    raise SystemExit(ours.exit_code) from error
