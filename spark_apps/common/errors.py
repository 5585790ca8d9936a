"""Errors of ours end an app as one sentence, wherever on the cluster they were raised."""

import re
import sys
from collections.abc import Callable

from pyspark.errors import PySparkException

from planner import errors
from planner.errors import PlannerError
from planner.printable import one_line

_RAISED_BY_A_WORKER = re.compile(r"^planner\.(?:\w+\.)*errors\.(\w+): (.+)$", re.MULTILINE)
SENTENCE_MARK = "planner: "
"""What the one sentence begins with on stderr, so that it can be found among Spark's lines."""


def finish(main: Callable[[], None]) -> None:
    """Run ``main``; an error of ours becomes one sentence on stderr and its exit code."""
    try:
        main()
    except PlannerError as error:
        _leave(error)
    except PySparkException as error:
        ours = error_of_worker(error)
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


def _leave(error: PlannerError) -> None:
    sys.stderr.write(f"{SENTENCE_MARK}{one_line(str(error))}\n")
    sys.stderr.flush()
    raise SystemExit(error.exit_code) from error
