"""``planner sample``: reads every policy's group once a period, for runs that only look back.

Each installation is read on a thread of its own, all its groups in one go, and connections are closed after it: nothing
is kept between two reads but the coverage and one sentence for each failure, however long the sampler stands. Policies
are read anew each period. A reading lands as those of runs do, as one file, whole or not at all, so that a process that
is killed leaves nothing half-done.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import repeat
from pathlib import Path
from typing import Final

from planner.errors import PlannerError
from planner.policies.fleet import Fleet, PolicyLocation, load_fleet
from planner.runs.coverage import Coverage, read_coverage, write_coverage
from planner.runs.observe import observe_installation, with_kubeconfig
from planner.runs.past_runs import forget_samples
from planner.sources.live import Installation, Pace, installations
from planner.storage.landing import GroupKey
from planner.text.words import counted, duration

READS_AT_ONCE: Final = 32
"""Installations that are read at a time; a slow one takes one of these places and holds up nobody else."""

MOST_BACKOFF_S: Final = 300.0
"""An installation of which no group can be read is tried at half of the rate after each failure, down to this one."""

NOTICE_S: Final = 0.5
"""Within which time the end is noticed, and a read that has ended is written down."""

END_S: Final = 20.0
"""For how long reads that go on are waited for at the end: each of their requests has a deadline of 10 s."""

FORGET_EVERY_S: Final = 3600.0
"""How often samples beyond ``keep_days`` are searched for."""

STUCK_PERIODS: Final = 3
"""The sampler is not alive when it began no period for so many, and not ready when it read nothing for so many."""

_WHOLE: Final = "."
"""What a sentence is about that concerns all installations: policies or data folder."""

_RECORD: Final = "sampling.json"


@dataclass(frozen=True, slots=True)
class SamplerOptions:
    """What to read, where to, how often (``every_s`` seconds) and for how many days samples stay at most."""

    policies: PolicyLocation
    data: Path
    every_s: float
    keep_days: int
    kubeconfig: Path | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """One read of one installation: when each group was read (UTC), and why policies' groups were not, by name."""

    installation: Installation
    times: Mapping[GroupKey, datetime]
    failures: Mapping[str, PlannerError]
    took_s: float


@dataclass(slots=True)
class _Retry:
    """How often in a row no group of an installation was read, and when it is tried again, by the monotonic clock."""

    failures: int = 0
    due: float = 0.0


def read_installation(installation: Installation, data: Path) -> Read:
    """Read all groups of an installation once and land their samples in one file; what fails is in the answer."""
    times: dict[GroupKey, datetime] = {}
    began = time.monotonic()

    failures = observe_installation(installation, 0.0, Pace(), data, times.__setitem__)
    return Read(installation, times, dict(failures), time.monotonic() - began)


class Sampler:
    """A standing sampler. ``say`` prints one sentence; its caller holds the folder's lock meanwhile.

    Raises ``BadInputError`` where no policy can be used at the beginning; later on that is a sentence.
    """

    def __init__(self, options: SamplerOptions, say: Callable[[str], object]) -> None:
        _fleet(options)
        self._options, self._say = options, say
        self._lock = threading.Lock()
        self._ended: list[Read] = []
        self._threads: dict[str, threading.Thread] = {}
        self._slots = threading.Semaphore(READS_AT_ONCE)
        self._retries: dict[str, _Retry] = {}
        self._printed: dict[str, str] = {}
        self._coverage = _continue_coverage(options)
        self._forget_due = self._began_at = time.monotonic()
        self._read_at: float | None = None
        self._last_failure = "no read has ended yet"

    def run(self, is_over: Callable[[], bool]) -> None:
        """Read once a period until ``is_over``; then wait for the reads that go on, ``END_S`` at most."""
        due = time.monotonic()
        while not is_over():
            if time.monotonic() >= due:
                self._begin_period()
                # A period whose time passed meanwhile, on a machine that slept, is not made up for.
                due = max(due, time.monotonic() - self._options.every_s) + self._options.every_s
            time.sleep(NOTICE_S)
            self._take_ended()
        until = time.monotonic() + END_S
        for thread in tuple(self._threads.values()):
            thread.join(max(0.0, until - time.monotonic()))
        self._take_ended()

    def _begin_period(self) -> None:
        now = self._began_at = time.monotonic()
        try:
            by_key = self._installations_by_key()
            if now >= self._forget_due:
                self._forget_due = now + FORGET_EVERY_S
                forget_samples(self._options.data, datetime.now(UTC) - timedelta(days=self._options.keep_days))
        except PlannerError as error:
            self._print_once(_WHOLE, str(error))
            return
        self._take_back(_WHOLE, "policies and data folder can be used again")
        for key, installation in by_key.items():
            if not self._is_reading(key) and self._retries.get(key, _Retry()).due <= now:
                self._threads[key] = threading.Thread(target=self._read, args=(installation,), name="read", daemon=True)
                self._threads[key].start()

    def _installations_by_key(self) -> Mapping[str, Installation]:
        """Return what is to be read, and forget installations and files that are no longer among it."""
        fleet, kubeconfig = _fleet(self._options), self._options.kubeconfig
        listed = installations(with_kubeconfig(policy, kubeconfig) for policy in fleet.policies)
        by_key = {installation.key: installation for installation in listed}
        current = {_WHOLE, _RECORD, *fleet.refused, *by_key, *map(_slow, by_key)}
        current.update(policy.metadata.name for policy in fleet.policies)
        self._printed = {about: sentence for about, sentence in self._printed.items() if about in current}
        self._retries = {key: retry for key, retry in self._retries.items() if key in by_key}
        self._threads = {key: thread for key, thread in self._threads.items() if thread.is_alive()}
        for name, sentence in fleet.refused.items():
            self._print_once(name, f"file {name}: {sentence}")
        return by_key

    def _is_reading(self, key: str) -> bool:
        return key in self._threads and self._threads[key].is_alive()

    def _read(self, installation: Installation) -> None:
        with self._slots:
            read = read_installation(installation, self._options.data)
        with self._lock:
            self._ended.append(read)

    def _take_ended(self) -> None:
        """Write down what reads that have ended came to."""
        with self._lock:
            ended, self._ended = self._ended, []
        for read in ended:
            self._conclude(read)
        times = {key: at for read in ended for key, at in read.times.items()}
        if not times:
            return
        self._read_at = time.monotonic()
        self._coverage = self._coverage.add(times)
        try:
            write_coverage(self._options.data, self._coverage)
        except PlannerError as error:
            self._print_once(_RECORD, str(error))
        else:
            self._take_back(_RECORD, "what was read is on record again")

    def _conclude(self, read: Read) -> None:
        """Print what is news, and set when an installation of which no group was read is tried again."""
        key, name = read.installation.key, read.installation.name
        if not read.times:
            reason = str(next(iter(read.failures.values()), "nobody answered")).rstrip(".")
            self._last_failure = f"{name}: {reason}"
            groups = counted(len(read.installation.policies), "group")
            rarest = duration(self._back_off(key))
            self._print_once(key, f"{name}: none of {groups} was read, tried again, every {rarest} at least: {reason}")
            return
        self._retries.pop(key, None)
        self._take_back(key, f"{name} answers again")
        for policy in (policy.metadata.name for policy in read.installation.policies):
            if policy in read.failures:
                self._print_once(policy, f"policy {policy}: its group was not read: {read.failures[policy]}")
            else:
                self._take_back(policy, f"policy {policy}: its group is read again")
        if read.took_s > self._options.every_s:
            self._print_once(_slow(key), f"{name}: a read took longer than the period: name a longer --every")

    def _back_off(self, key: str) -> float:
        """Set when the installation is tried again; return after how many seconds that is at the latest, ever."""
        every_s = self._options.every_s
        rarest_s = max(every_s, MOST_BACKOFF_S)
        retry = self._retries.setdefault(key, _Retry())
        retry.failures += 1
        wait_s = min(every_s * 2.0 ** min(retry.failures - 1, 16), rarest_s)
        # Half of a period less: with the period that begins next to that time.
        retry.due = time.monotonic() + wait_s - every_s / 2
        return rarest_s

    def _print_once(self, about: str, sentence: str) -> None:
        """Print a sentence unless it is what was last printed of the same thing."""
        if self._printed.get(about) != sentence:
            self._printed[about] = sentence
            self._say(sentence)

    def _take_back(self, about: str, sentence: str) -> None:
        if self._printed.pop(about, None) is not None:
            self._say(sentence)

    def why_not_alive(self) -> str | None:
        """Return why the process should be started anew, ``None`` while it begins its periods."""
        silent_s = STUCK_PERIODS * self._options.every_s
        if time.monotonic() - self._began_at <= silent_s:
            return None
        return f"no period began for {duration(time.monotonic() - self._began_at)}"

    def why_not_ready(self) -> str | None:
        """Return why runs cannot use this sampler's reads, ``None`` while it reads some group."""
        if self._read_at is None:
            return f"nothing was read yet: {self._last_failure}"
        silent_s = time.monotonic() - self._read_at
        if silent_s <= STUCK_PERIODS * self._options.every_s:
            return None
        return f"nothing was read for {duration(silent_s)}: {self._last_failure}"


def _fleet(options: SamplerOptions) -> Fleet:
    """Return the policies as they are now. Raises ``BadInputError`` where none can be used."""
    fleet = load_fleet(options.policies)
    fleet.check_served()
    return fleet


def _slow(key: str) -> str:
    """Return what the sentence is about that an installation's reads take longer than a period."""
    return f"slow {key}"


def _continue_coverage(options: SamplerOptions) -> Coverage:
    """Return the coverage that an earlier sampler left; one with another period begins anew, as its gaps are others."""
    before = read_coverage(options.data)
    return before if before is not None and before.every_s == options.every_s else Coverage(options.every_s)


def sample_once(options: SamplerOptions) -> tuple[Mapping[str, str], Sequence[Read]]:
    """Read every installation once and write down what came of it; return refused policy files and the reads.

    Raises ``BadInputError`` where no policy can be used, ``StorageError`` where the folder cannot be written.
    """
    fleet = _fleet(options)
    targets = installations(with_kubeconfig(policy, options.kubeconfig) for policy in fleet.policies)
    with ThreadPoolExecutor(max_workers=READS_AT_ONCE, thread_name_prefix="read") as pool:
        reads = tuple(pool.map(read_installation, targets, repeat(options.data)))
    times = {key: at for read in reads for key, at in read.times.items()}
    if times:
        write_coverage(options.data, _continue_coverage(options).add(times))
    forget_samples(options.data, datetime.now(UTC) - timedelta(days=options.keep_days))
    return fleet.refused, reads
