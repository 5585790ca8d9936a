"""The log: constant phrases with fields, as JSON objects or as lines, on standard error.

What is in it is ours to choose: the clients of the API server log whole answers, with whatever passwords stand in a
pod's environment, at level debug. They are kept above it.
"""

import logging
import sys
from collections.abc import Mapping
from typing import Any, Final

from pythonjsonlogger.json import JsonFormatter

from planner.controller.settings import LogFormat, LogLevel
from planner.text.printable import json_text, one_line, printable, without_passwords

_TALKATIVE: Final = ("kubernetes", "urllib3", "aiohttp", "asyncio")
_FIELDS: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "settings", "k8s_ref"}


class _Lines(logging.Formatter):
    """Time, level and phrase, and the fields after it."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(without_passwords(super().format(record)))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's own name
        """Return the one line of a record, whatever its message and fields hold."""
        fields = (f"{name}={value}" for name, value in _fields(record).items())
        return one_line(" ".join((super().formatMessage(record), *fields)))

    def formatException(self, ei: Any) -> str:  # noqa: N802  logging's own name
        """Return a trace of indented lines: the text of an error begins none that looks like a record."""
        return "\n".join(f"    {line}" for line in super().formatException(ei).splitlines())


class _Objects(JsonFormatter):
    """JSON whose strings hold nothing raw that steers a terminal, and no password of a URL."""

    def format(self, record: logging.LogRecord) -> str:
        return json_text(without_passwords(super().format(record)))


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _FIELDS}


def set_up(form: LogFormat, level: LogLevel) -> None:
    """Log to standard error in this form, from this level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(form))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.INFO, root.level))
    # One line for each change of each plan, to say that it was received.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    # It runs on a thread of its own, and the signals are the main thread's to handle.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)


def formatter(form: LogFormat) -> logging.Formatter:
    """Return what makes a line of a record."""
    if form is LogFormat.TEXT:
        return _Lines("%(asctime)s %(levelname)-7s %(message)s")
    return _Objects(
        "%(asctime)s %(levelname)s %(name)s %(message)s",
        rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
        datefmt="%Y-%m-%dT%H:%M:%S%z",
        json_ensure_ascii=False,
        reserved_attrs=sorted(_FIELDS - {"message", "asctime"}),
    )
