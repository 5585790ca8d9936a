"""Secrets that a policy takes from an Airflow connection (``airflow://CONN_ID``) where it could name a file.

Only a task of Airflow can read connections. It lends us a way to do so with ``lent``; everywhere else a policy that
needs one is refused with one sentence. What is read stays in memory, and in no ``repr``, error or log.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from planner.errors import BadInputError

SCHEME: Final = "airflow://"


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection's fields that hold secrets; ``extra`` is the JSON text, as Airflow keeps it."""

    reference: str
    login: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    extra: str = field(default="", repr=False)

    def fields(self) -> Mapping[str, Any]:
        """Return the fields of ``extra``. Raises ``BadInputError``, which shows nothing of its content."""
        try:
            fields = json.loads(self.extra or "{}")
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise BadInputError(f"the extra of {self.reference} is no JSON object: correct it in Airflow")
        return fields

    def required(self, **purposes: str) -> tuple[str, ...]:
        """Return the fields of these names; raise ``BadInputError`` that names the empty ones with their purposes."""
        missing = [f"{name} (the {purpose})" for name, purpose in purposes.items() if not getattr(self, name)]
        if missing:
            raise BadInputError(f"{self.reference} lacks {' and '.join(missing)}: set it in Airflow")
        return tuple(getattr(self, name) for name in purposes)


Read = Callable[[str], Connection]
"""From a connection's id to the connection; raises ``BadInputError`` or ``OutOfReachError`` without its content."""

_lock = threading.Lock()
_lenders: list[Read] = []
"""Of the whole process, not of a context: groups are watched by threads of a pool."""


@contextmanager
def lent(read: Read) -> Iterator[None]:
    """Let policies take connections by ``read`` meanwhile. It is never called by two threads at once."""
    _lenders.append(read)
    try:
        yield
    finally:
        _lenders.remove(read)


def connection(reference: str) -> Connection:
    """Return the connection that ``airflow://CONN_ID`` names. Raises ``BadInputError`` outside of an Airflow task."""
    if not _lenders:
        raise BadInputError(
            f"{reference} is a connection of Airflow, which only its tasks can read: run the DAG, or name a file here"
        )
    with _lock:
        return _lenders[-1](reference.removeprefix(SCHEME))
