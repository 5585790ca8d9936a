"""How a script ends: signals stop what it started, and an error is one sentence and an exit code."""

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from planner.errors import PlannerError

INTERRUPTED = 130


class RunFailedError(PlannerError):
    """A task failed; ``code`` becomes the exit code."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


def exit_code_of(work: Callable[[], object], prefix: str = "", cannot_run: tuple[type[Exception], ...] = ()) -> int:
    """Return 0 after ``work``, or what its error stands for, told on standard error behind ``prefix``.

    ``cannot_run``: errors that say that something is missing here; the exit code is then 3.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        work()
    except cannot_run as error:
        return _leave(prefix, error, 3)
    except RunFailedError as error:
        return _leave(prefix, error, error.code)
    except PlannerError as error:
        return _leave(prefix, error, error.exit_code)
    except KeyboardInterrupt:
        return _leave(prefix, "interrupted: everything that was started has been stopped", INTERRUPTED)
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _leave(prefix: str, sentence: object, code: int) -> int:
    sys.stdout.flush()
    sys.stderr.write(f"{prefix}{sentence}\n")
    return code
