"""Everything the planner refuses or cannot do, as one tree.

::

    PlannerError
    ├── BadInputError           exit 2   a file, field, option or name is wrong; a retry cannot help
    │   ├── DocumentError                a document cannot be read as what it should be
    │   │   ├── NewerVersionError        it was written by a newer planner
    │   │   └── DigestError              it was edited after the fact
    │   ├── UnknownNameError             a strategy, group or topic that is not there
    │   └── MissingExtraError            an optional dependency is not installed
    ├── RefusedError            exit 1   a plan that would do harm, or whose effect is unknown, is not made
    ├── StaleError              exit 1   a plan that holds no longer
    ├── IncompleteError         exit 1   a run decided for some policies, and names those that it could not serve
    ├── DefectError             exit 2   the planner itself is wrong about one group; the others go on
    ├── OutOfReachError         exit 3   a system it needs does not answer; a retry may help
    └── StorageError            exit 3   a file could not be written or read; nothing is half-written

Every message names the thing, what was found, what was expected and the next step, in one sentence.
"""

from typing import ClassVar

from planner.text.printable import one_line, without_passwords


class PlannerError(Exception):
    """Base of all errors that a user sees as one sentence; ``exit_code`` is what the command line returns.

    The sentence goes to screens, logs, Events and files, also by others' hands (a trace in Airflow's log), so that no
    password of a URL is in it from the start, and no character that steers a terminal or begins a line of its own.
    """

    exit_code: ClassVar[int] = 2
    can_retry: ClassVar[bool] = False

    def __init__(self, *arguments: object) -> None:
        super().__init__(
            *(
                one_line(without_passwords(argument)) if isinstance(argument, str) else argument
                for argument in arguments
            )
        )


class BadInputError(PlannerError):
    """The input is wrong; running again without changing it gives the same answer."""


class DocumentError(BadInputError):
    """A document is not what it should be: broken syntax, unknown or missing field, wrong type, impossible value."""


class NewerVersionError(DocumentError):
    """A document or folder was written by a newer version of the planner."""


class DigestError(DocumentError):
    """A document's content does not match the digest it carries: it was edited after it was made."""


class UnknownNameError(BadInputError):
    """A named thing (strategy, consumer group, topic) does not exist; the message lists what does, where it can."""


class MissingExtraError(BadInputError):
    """An optional dependency is missing: ``what`` needs the extra, and the message says how to install it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra}: run pip install '.[{extra}]' in your clone of the planner")


class RefusedError(PlannerError):
    """A plan is not made, for the reason that ``name`` says to programs and the message to people."""

    exit_code = 1

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(f"no plan ({name}): {sentence}")
        self.name = name
        self.sentence = sentence


class StaleError(PlannerError):
    """A plan is over: the world that it was made for is gone, so it is made anew."""

    exit_code = 1


class IncompleteError(PlannerError):
    """A run is over, and some policies have no decision, no plan or no page; the message names each with its reason."""

    exit_code = 1


class DefectError(PlannerError):
    """The planner itself failed on one group, with an error that it does not know."""


class OutOfReachError(PlannerError):
    """A system the planner needs cannot be reached or does not answer in time."""

    exit_code = 3
    can_retry = True


class StorageError(PlannerError):
    """A file could not be read or written (disk full, no permission); the earlier content is untouched."""

    exit_code = 3


def why_unread(error: Exception) -> str:
    """Return what kept a file from being read as the end of a sentence: no number of the system, no path again."""
    if isinstance(error, IsADirectoryError):
        return "it is a folder, expected a file"
    if isinstance(error, UnicodeDecodeError):
        return f"it is no text: byte {error.start} is not UTF-8"
    return (isinstance(error, OSError) and error.strerror) or str(error)
