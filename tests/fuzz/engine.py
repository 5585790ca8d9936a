"""One case after the other against one reader: only typed errors, within bounded time and memory.

A case follows from reader, seed, number and the kept corpus alone, so that any can be run again.
"""

import base64
import json
import re
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from planner.errors import PlannerError
from tests.fuzz.damage import Damage, json_or_bytes

SLOW_S: Final = 2.0
"""Of the processor: no case may take longer."""
ENDLESS_S: Final = 20.0
"""After so much of the processor a case is ended."""
MOST_MIB: Final = 512
"""No case may need more memory beyond what its process has from the start."""
CORPUS: Final = Path(__file__).with_name("corpus")


@dataclass(frozen=True)
class Reader:
    """One door. ``seeds`` makes valid inputs; ``modules`` begin the names of those whose arcs guide the growth."""

    name: str
    read: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]
    modules: tuple[str, ...]
    damage: Damage = json_or_bytes
    errors: tuple[type[Exception], ...] = (PlannerError,)
    seal: Callable[[bytes], bytes] = field(default=lambda data: data)
    """Makes digests right again, so that what is behind their check is reached."""

    def outcome(self, data: bytes) -> str:
        """Read and return what came of it: "read", or the name of a typed error. Anything else passes through."""
        try:
            self.read(data)
        except self.errors as error:
            return type(error).__name__
        return "read"


@dataclass(frozen=True)
class Finding:
    """A case that went wrong, and how."""

    reader: str
    number: int
    problem: str
    data: bytes

    def __str__(self) -> str:
        shown = self.data if len(self.data) <= 4_000 else self.data[:200] + b" ... " + self.data[-200:]
        return f"{self.reader}, case {self.number}: {self.problem}\n    {shown!r}"


class EndlessError(BaseException):
    """A case took so long that it was ended; no reader catches this."""


@cache
def inputs(name: str, seeds: Callable[[], Sequence[bytes]]) -> Sequence[bytes]:
    """Return a reader's valid inputs and what its kept corpus holds."""
    return (*valid_inputs(seeds), *kept(name))


@cache
def valid_inputs(seeds: Callable[[], Sequence[bytes]]) -> Sequence[bytes]:
    """Return the inputs that a reader reads."""
    return tuple(seeds())


def corpus_file(name: str) -> Path:
    """Return where the inputs of a reader are kept that reached what no seed reaches."""
    return CORPUS / f"{re.sub('[^a-z0-9]+', '-', name)}.jsonl"


def kept(name: str) -> list[bytes]:
    """Return the kept inputs of a reader: one a line, as text where it is text, else in Base64."""
    path = corpus_file(name)
    lines = path.read_text().splitlines() if path.exists() else []
    return [_decoded(json.loads(line)) for line in lines]


def encoded(data: bytes) -> str:
    """Return the line of one kept input."""
    with suppress(UnicodeDecodeError):
        return json.dumps(data.decode())
    return json.dumps({"base64": base64.b64encode(data).decode()})


def _decoded(value: Any) -> bytes:
    return value.encode("utf-8") if isinstance(value, str) else base64.b64decode(value["base64"])


def case(reader: Reader, seed: int, number: int, known: Sequence[bytes] | None = None) -> bytes:
    """Return the input of one case: a valid one after some damage."""
    chance = Random(seed * 1_000_000_007 + number)
    others = inputs(reader.name, reader.seeds) if known is None else known
    # What is kept is mostly refused by now: half of the cases are of inputs that only their damage makes wrong.
    origins = valid_inputs(reader.seeds) if chance.random() < 0.5 else others
    first, second = chance.choice(origins), chance.choice(origins)
    # Short ones more often: they are read faster and have all the shapes.
    return reader.seal(reader.damage(chance, min(first, second, key=len), others))


def run(reader: Reader, seed: int, numbers: range) -> tuple[Counter[str], list[Finding]]:
    """Run the cases ``numbers``; return how often each outcome came, and what went wrong."""
    counted: Counter[str] = Counter()
    findings = []
    for data in inputs(reader.name, reader.seeds):
        reader.outcome(data)  # imports and caches are no case's own
    with bounded():
        for number in numbers:
            data = case(reader, seed, number)
            outcome, problem = attempt(reader, data)
            counted[outcome] += 1
            if problem:
                findings.append(Finding(reader.name, number, problem, data))
    return counted, findings


def attempt(reader: Reader, data: bytes) -> tuple[str, str]:
    """Return what came of one input, and what was wrong with that ("" for nothing)."""
    start = time.thread_time()  # a machine that stands still is no slow reader
    signal.setitimer(signal.ITIMER_PROF, ENDLESS_S)
    problem = ""
    try:
        outcome = reader.outcome(data)
    except EndlessError:
        outcome, problem = "endless", f"took more than {ENDLESS_S:g} s"
    except MemoryError:
        outcome, problem = "memory", f"takes more than {MOST_MIB} MiB"
    except Exception as error:
        # Whatever it is, it is what we are looking for.
        outcome, problem = "untyped", f"{type(error).__name__}: {str(error)[:200]} ({_origin(error)})"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if not problem and (took_s := time.thread_time() - start) > SLOW_S:
        problem = f"took {took_s:.1f} s"
    return outcome, problem


def _origin(error: Exception) -> str:
    """Return the innermost line of ours that the error went through."""
    lines = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "/planner/" in code.co_filename or "/spark_apps/" in code.co_filename:
            lines.append(f"{'/'.join(code.co_filename.split('/')[-3:])}:{trace.tb_lineno}")
        trace = trace.tb_next
    return lines[-1] if lines else "no line of ours"


@contextmanager
def bounded() -> Iterator[None]:
    """Bound memory beyond what the process has now, and end what never ends."""

    def end(*_: object) -> None:
        raise EndlessError

    before, most = resource.getrlimit(resource.RLIMIT_AS), _address_space() + MOST_MIB * 1024 * 1024
    handler = signal.signal(signal.SIGPROF, end)
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGPROF, handler)


def _address_space() -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmSize:\s+(\d+) kB", status)[1]) * 1024  # type: ignore[index]
