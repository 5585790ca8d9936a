"""Airflow's connections, lent to policies that name them while a task runs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from planner.errors import BadInputError, OutOfReachError
from planner.sources.connections import SCHEME, Connection, lent

_CONTEXT: Final = "_AIRFLOW_PROCESS_CONTEXT"
"""That of a server, which the command ``airflow connections`` sets, too, has Airflow's database asked."""


@contextmanager
def airflow_connections() -> Iterator[None]:
    """Let policies take connections as ``airflow.sdk`` gives them to this task."""
    with lent(_read):
        yield


@contextmanager
def command_connections() -> Iterator[None]:
    """Let policies take connections in a command, from all places that ``airflow connections get`` asks."""
    before = os.environ.get(_CONTEXT)
    os.environ[_CONTEXT] = "server"
    try:
        with lent(_read):
            yield
    finally:
        os.environ.pop(_CONTEXT)
        if before is not None:
            os.environ[_CONTEXT] = before


def _read(name: str) -> Connection:
    from airflow.sdk import Connection as AirflowConnection  # noqa: PLC0415  commands without such policies stay quick
    from airflow.sdk.exceptions import AirflowNotFoundException  # noqa: PLC0415

    reference = f"{SCHEME}{name}"
    try:
        connection = AirflowConnection.get(name)
    except AirflowNotFoundException:
        raise BadInputError(
            f"{reference} is not defined in this Airflow: airflow connections add {name} adds it"
        ) from None
    except Exception as error:
        # Its text is a backend's, and may quote what it has read.
        raise OutOfReachError(
            f"{reference} cannot be read ({type(error).__name__}): look into Airflow's secrets backend"
        ) from None
    return Connection(reference, connection.login or "", connection.password or "", connection.extra or "")
