"""Processes a test owns: started, awaited, frozen, stopped in order, and never outliving their owner."""

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil

from tests.clusters.errors import CannotRunHereError, StartFailedError

GRACE_S = 15.0
POLL_S = 0.05
TAIL_LINES = 40

Answer = TypeVar("Answer")

_TETHER = Path(__file__).with_name("tethered.py")


_Order = tuple[Callable[[], subprocess.Popen[bytes]], "Future[subprocess.Popen[bytes]]"]


class _Spawner:
    """One thread that starts every process.

    The kernel ties the death signal to the *thread* that forked, not to its process: a child started from
    a thread of a pool would be killed as soon as that pool shut down. This thread lives as long as we do.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: queue.SimpleQueue[_Order] | None = None

    def run(self, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Return what ``start`` returned on the spawner's thread; what it raised is raised here."""
        with self._lock:
            if self._orders is None:
                self._orders = queue.SimpleQueue()
                threading.Thread(target=self._serve, name="spawner", daemon=True).start()
        outcome: Future[subprocess.Popen[bytes]] = Future()
        self._orders.put((start, outcome))
        return outcome.result()

    def _serve(self) -> None:
        assert self._orders is not None
        while True:
            start, outcome = self._orders.get()
            try:
                outcome.set_result(start())
            except BaseException as error:  # handed to the caller, whatever it is
                outcome.set_exception(error)


_SPAWNER = _Spawner()


@dataclass
class ManagedProcess:
    """A program with its own session and log file, restartable under the same name.

    ``argv`` is run in ``directory``, which must exist; standard output and error are appended to
    ``directory/name.log``. ``environment`` is added to ours. With ``takes_orders`` its standard input is a pipe that
    ``tell`` writes to; otherwise it is empty.
    """

    name: str
    argv: Sequence[str]
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    takes_orders: bool = False
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False, repr=False)
    _log_start: int = field(default=0, init=False, repr=False)

    @property
    def log(self) -> Path:
        """Where the output of every run goes, oldest first."""
        return self.directory / f"{self.name}.log"

    @property
    def pid(self) -> int:
        """The process id of the program itself (there is no shell in between)."""
        return self._started().pid

    @property
    def running(self) -> bool:
        """True from ``start`` until the process has ended; a frozen process counts as running."""
        return self._process is not None and self._process.poll() is None

    @property
    def returncode(self) -> int | None:
        """How the last run ended: negative for a signal, ``None`` while it runs."""
        return self._started().poll()

    def start(self) -> None:
        """Start a run; return once the program itself runs and its life is tied to ours.

        Raise StartFailedError when it cannot be executed, CannotRunHereError where the kernel cannot tie a
        child to its parent.
        """
        if self.running:
            raise StartFailedError(f"{self.name} is already running as process {self.pid}")
        if sys.platform != "linux":
            raise CannotRunHereError("linux", "clusters die with their owner by prctl, which only Linux has")
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        report, report_in_child = os.pipe()
        with os.fdopen(report, "rb") as problems:
            try:
                self._process = _SPAWNER.run(lambda: self._spawn(report_in_child))
            finally:
                os.close(report_in_child)
            # Ends with the exec. A process frozen or left alone before that would not be tied to us yet.
            if problem := problems.read().decode(errors="replace"):
                self._process.wait()
                raise StartFailedError(f"{self.name} cannot be started: {problem}")

    def _spawn(self, report: int) -> subprocess.Popen[bytes]:
        tether = [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid()), str(report)]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*tether, *self.argv],
                cwd=self.directory,
                env={**os.environ, **self.environment},
                stdin=subprocess.PIPE if self.takes_orders else subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[report],
                start_new_session=True,  # Ctrl-C is ours to handle: we stop processes in order
            )

    def tell(self, line: str) -> None:
        """Write one line to its standard input; raise StartFailedError when nobody reads there any more."""
        pipe = self._started().stdin
        assert pipe is not None, f"{self.name} takes no orders"
        try:
            pipe.write(f"{line}\n".encode())
            pipe.flush()
        except (BrokenPipeError, ValueError) as error:  # it ended by itself, or we stopped it
            raise StartFailedError(f"{self.name} takes no orders any more\n{self.log_tail()}") from error

    def wait_for_line(self, pattern: str, timeout_s: float) -> re.Match[str]:
        """Return the match of ``pattern`` in this run's output.

        Raise StartFailedError with the log tail when the process ends or ``timeout_s`` passes first.
        """
        return self.wait_until(f"the line {pattern!r}", lambda: re.search(pattern, self.output()), timeout_s)

    def wait_until(self, what: str, probe: Callable[[], Answer | None], timeout_s: float) -> Answer:
        """Return the first true answer of ``probe``, called every 50 ms while the process runs.

        Raise StartFailedError naming ``what``, with the log tail, when it ends or ``timeout_s`` passes first.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            ended = not self.running  # asked before the probe: last words count
            if answer := probe():
                return answer
            if ended:
                raise StartFailedError(f"{self.name} ended with {self.returncode} before {what}\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise StartFailedError(f"{self.name}: no {what} within {timeout_s:g} s\n{self.log_tail()}")
            time.sleep(POLL_S)

    def output(self) -> str:
        """Everything this run has written so far."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def log_tail(self, lines: int = TAIL_LINES) -> str:
        """The last ``lines`` lines of this run's output under a heading that names the process."""
        tail = self.output().splitlines()[-lines:]
        return "\n".join([f"--- last {len(tail)} lines of {self.name} ---", *tail])

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens when the process has ended."""
        if self.running:
            self._started().send_signal(number)

    def stop(self, grace_s: float = GRACE_S) -> int | None:
        """Ask with SIGTERM, insist with SIGKILL after ``grace_s``; return how it ended.

        ``None`` when it was never started.
        """
        self.ask_to_stop()
        return self.wait_stopped(grace_s)

    def ask_to_stop(self) -> None:
        """Send SIGTERM and return at once; a frozen process is resumed, so that it can obey."""
        self.signal(signal.SIGTERM)
        self.resume()

    def wait_stopped(self, grace_s: float) -> int | None:
        """Return how it ended, killing it when it has not within ``grace_s``; ``None`` if never started."""
        if self._process is None:
            return None
        try:
            returncode = self._process.wait(max(0.0, grace_s))
        except subprocess.TimeoutExpired:
            return self.kill()
        self._close_input()
        return returncode

    def kill(self) -> int:
        """End it as a crash does (SIGKILL) and return how it ended."""
        self.signal(signal.SIGKILL)
        returncode = self._started().wait()
        self._close_input()
        return returncode

    def freeze(self) -> None:
        """Stop it from running at all (SIGSTOP) and return once it does; its connections stay open.

        The kernel has one of its threads take the signal: on a busy machine it goes on for some milliseconds.
        """
        self.signal(signal.SIGSTOP)
        while self.running and psutil.Process(self.pid).status() != psutil.STATUS_STOPPED:
            time.sleep(POLL_S / 10)

    def resume(self) -> None:
        """Let a frozen process go on."""
        self.signal(signal.SIGCONT)

    def _close_input(self) -> None:
        pipe = self._started().stdin
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):  # what was still to be written interests nobody any more
                pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise StartFailedError(f"{self.name} was never started")
        return self._process


def stop_together(processes: Iterable[ManagedProcess], grace_s: float = GRACE_S) -> None:
    """Stop processes of one rank: all are asked before any is waited for, all share one ``grace_s``."""
    asked = list(processes)
    for process in asked:
        # Once each: to many servers a second SIGTERM means "drop everything".
        process.ask_to_stop()
    deadline = time.monotonic() + grace_s
    for process in asked:  # those that had ended by themselves, too: their pipes are still open
        process.wait_stopped(deadline - time.monotonic())
