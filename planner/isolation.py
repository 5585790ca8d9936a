"""One group's failure stays its own: what is done for one policy ends with a result or with one sentence."""

import logging
import traceback
from collections.abc import Callable
from typing import TypeVar

from planner.errors import DefectError, PlannerError
from planner.text.printable import one_line, printable

log = logging.getLogger(__name__)

_T = TypeVar("_T")


def attempt(policy: str, stage: str, work: Callable[..., _T], *arguments: object) -> _T | PlannerError:
    """Return what ``work`` returns of the arguments, or the error that it ends with.

    An error that the planner does not know becomes a ``DefectError`` with its type and text; its trace is logged.
    """
    try:
        return work(*arguments)
    except PlannerError as error:
        return error
    except Exception as error:
        log.error("stage %s failed on policy %s\n%s", stage, one_line(policy), printable(traceback.format_exc()))
        return DefectError(
            f"stage {stage} failed on it with {type(error).__name__}: {error}; this is a defect of the planner: report "
            "it with the trace in the task's log"
        )
