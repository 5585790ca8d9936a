"""``planner`` as a process of its own, with the stand-in group or real brokers, and a fault that it brings upon itself.

Processes are forked from one that has imported everything: to start an interpreter 400 times is half of the work else.
A fault is a signal that the process sends itself right before or right after one of its requests that write.
"""

import itertools
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import psutil

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.faults.executor", "tests.faults.preloaded"])
END_S = 900.0
"""Only against hanging: an executor that follows another one waits for its lease, and a busy machine for all of it."""
_ROOT = Path(__file__).parents[2]
_READS = ("get ", "list ", "ask ")
OFFSETS = "set offsets"
"""How the words of a request to a broker begin that sets offsets."""


@dataclass(frozen=True)
class Fault:
    """Send ``signal`` at the ``number``-th write whose words begin with ``request``, before or ``after`` it.

    With ``frozen``, the process id of a broker, that one is frozen first, and SIGKILL comes between a write to it
    and its answer.
    """

    signal: signal.Signals
    number: int
    after: bool = False
    request: str = ""
    frozen: int | None = None


class Executor:
    """One ``planner`` process; what it says is in ``said``.

    With ``asks_brokers`` groups are those of their brokers, and it says each of its requests that sets offsets.
    """

    def __init__(
        self,
        log: Path,
        *arguments: object,
        kubeconfig: Path,
        fault: Fault | None = None,
        environment: Mapping[str, str] | None = None,
        asks_brokers: bool = False,
    ) -> None:
        self._log = log
        words = [*map(str, arguments), "--kubeconfig", str(kubeconfig)]
        self.process = _CONTEXT.Process(
            target=_run, args=(words, str(log), fault, environment, asks_brokers), daemon=True
        )
        self.process.start()

    @property
    def said(self) -> str:
        """All that it has printed."""
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""

    @property
    def is_running(self) -> bool:
        """True until it has ended, by itself or by a signal."""
        return self.process.is_alive()

    def send(self, wanted: signal.Signals) -> None:
        """Send it a signal."""
        if self.process.pid is not None and self.process.is_alive():
            os.kill(self.process.pid, wanted)

    def wait(self, timeout_s: float = END_S) -> int:
        """Return its exit code, minus the signal where one ended it. Raises ``AssertionError`` when it does not end."""
        self.process.join(timeout_s)
        code = self.process.exitcode
        if code is None:
            self.kill()
            raise AssertionError(f"planner did not end within {timeout_s:.0f} s: {self.said}")
        return code

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.join()


def _run(
    words: list[str], log: str, fault: Fault | None, environment: Mapping[str, str] | None, asks_brokers: bool
) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    if fault is not None:
        _install(fault)
    if environment is not None:  # it must be there before the interpreter is
        found = {**os.environ, "PYTHONPATH": str(_ROOT), **environment}
        os.execve(sys.executable, [sys.executable, "-m", "tests.faults.executor", *words], found)
    if asks_brokers:
        _tell_offset_writes()
        _main(words)
    else:
        _planner(words)


def _planner(words: list[str]) -> None:
    """Run ``planner`` with the stand-in for the group."""
    from planner.cli import rollouts
    from planner.deployments.api import RolloutApi
    from tests.faults.group import NamespaceGroup

    own = RolloutApi.connect(Path(words[words.index("--kubeconfig") + 1]))
    rollouts.live_groups = lambda: NamespaceGroup(own)
    _main(words)


def _main(words: list[str]) -> None:
    from planner.cli.main import main

    sys.argv = ["planner", *words]
    main()


def _install(fault: Fault) -> None:
    from planner.deployments.offsets.kafka import KafkaOffsets
    from planner.deployments.offsets.rocketmq_writes import OffsetWrite, OffsetWriter
    from planner.sources.kubernetes import KubernetesApi

    ask, write, commit, numbers = KubernetesApi._ask, OffsetWriter.write, KafkaOffsets.commit, itertools.count(1)

    def struck(request: str, do: Callable[[], Any]) -> Any:
        counts = not request.startswith(_READS) and request.startswith(fault.request)
        is_now = counts and next(numbers) == fault.number
        if is_now and fault.frozen is not None:
            freeze(fault.frozen)
            OffsetWriter._next = _die  # type: ignore[method-assign, assignment]
        elif is_now and not fault.after:
            os.kill(os.getpid(), fault.signal)
        answer = do()
        if is_now and fault.after:
            os.kill(os.getpid(), fault.signal)
        return answer

    def faulty_ask(self: KubernetesApi, request: str, method: Any, *arguments: str, **options: Any) -> Any:
        return struck(request, lambda: ask(self, request, method, *arguments, **options))

    def faulty_write(self: OffsetWriter, request: OffsetWrite) -> None:
        struck(f"{OFFSETS} {request}", lambda: write(self, request))

    def faulty_commit(self: KafkaOffsets, group: str, offsets: Any) -> None:
        struck(f"{OFFSETS} of {group}", lambda: commit(self, group, offsets))

    KubernetesApi._ask = faulty_ask  # type: ignore[method-assign]
    OffsetWriter.write = faulty_write  # type: ignore[method-assign]
    KafkaOffsets.commit = faulty_commit  # type: ignore[method-assign]


def freeze(pid: int) -> None:
    """Stop a process from running at all; return once none of its threads does."""
    os.kill(pid, signal.SIGSTOP)
    while psutil.Process(pid).status() != psutil.STATUS_STOPPED:
        time.sleep(0.005)


def _die(_: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("no process outlives this signal")


def _tell_offset_writes() -> None:
    """Say each request that sets offsets before it is sent, whether or not it ever is."""
    from planner.deployments.offsets.kafka import KafkaOffsets
    from planner.deployments.offsets.rocketmq_writes import OffsetWrite, OffsetWriter

    write, commit = OffsetWriter.write, KafkaOffsets.commit

    def told_write(self: OffsetWriter, request: OffsetWrite) -> None:
        print(f"{OFFSETS} {request} at {self.broker}", flush=True)
        write(self, request)

    def told_commit(self: KafkaOffsets, group: str, offsets: Any) -> None:
        print(f"{OFFSETS} of {group}: {offsets}", flush=True)
        commit(self, group, offsets)

    OffsetWriter.write = told_write  # type: ignore[method-assign]
    KafkaOffsets.commit = told_commit  # type: ignore[method-assign]


if __name__ == "__main__":
    _planner(sys.argv[1:])
