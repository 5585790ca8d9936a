"""A call to an API server that ends in time, whatever the server, the network or a kubeconfig's program does."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from planner.errors import OutOfReachError

_T = TypeVar("_T")


def call_within(deadline_s: float, what: str, call: Callable[[], _T]) -> _T:
    """Return ``call()`` on a thread of its own, or raise ``OutOfReachError`` once ``deadline_s`` seconds have passed.

    Socket limits alone do not bound it: resolving a name has none, a server may send a byte now and then, and a
    kubeconfig may start a program that asks for a password.
    """
    outcome: Future[_T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # raised again by result(), on the caller's thread
            outcome.set_exception(error)

    threading.Thread(target=run, name="kubernetes-read", daemon=True).start()
    try:
        return outcome.result(deadline_s)
    except TimeoutError as error:
        raise no_answer(what, deadline_s) from error


def no_answer(what: str, deadline_s: float) -> OutOfReachError:
    """Return the error of a call that took longer than its deadline."""
    return OutOfReachError(f"{what}: no answer within {deadline_s:g} s: is the server up and near?")
