"""Killed at every system call of a writer, and the disk full at each: nothing is lost, and the next run is whole.

Python reports each call that opens, renames, removes, makes or changes a file to audit hooks, so that every one of a
writer is a point of failure, whoever added it. Where bytes are written the kernel itself ends the process, or refuses.
"""

import errno
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.documents.data import CALIBRATION, METRIC_HISTORY, SAMPLE, SNAPSHOT, DataKind
from planner.errors import StorageError
from planner.model.samples import GroupSample
from planner.pipeline import land_metrics, land_samples
from planner.policies.fleet import keep_fleet, read_fleet
from planner.runs.landed import ReadingsLander
from planner.runs.policy_stages import write_snapshot
from planner.storage.layout import RunFolder, is_time_name
from planner.storage.tidying import tidy_runs
from planner.storage.track_records import land_records
from planner.verification.judge import judge
from planner.verification.observed_change import ObservedChange
from tests.builders import AT, snapshot
from tests.pod_groups import plan_for
from tests.sample_builders import POLICY, watch
from tests.step_builders import STEPS
from tests.unit.snapshot.test_metrics import past

pytestmark = pytest.mark.slow

EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate", "tests.fsync")
REFUSED = 77
"""Exit code of a child whose writer raised ``StorageError``."""
BORNE = 78
"""Exit code of a child whose writer did not mind the fault: a folder that it could not make was there."""
PLAN = plan_for("app", ["a"], STEPS[:1])
KINDS: dict[str, DataKind[Any]] = {
    "samples": SAMPLE,
    "metrics": METRIC_HISTORY,
    "calibration": CALIBRATION,
    "snapshots": SNAPSHOT,
}


@dataclass(frozen=True)
class Writer:
    """``before`` leaves what an earlier run has written, ``write`` is what is disturbed."""

    before: Callable[[Path], object]
    write: Callable[[Path], object]


def policies(data: Path) -> None:
    (data / "policies").mkdir()
    (data / "policies" / "shop.yaml").write_text(POLICY)


def land_readings(data: Path, samples: Sequence[GroupSample]) -> None:
    lander = ReadingsLander(data)
    for sample in samples:
        lander.add(sample)
        lander.add(replace(sample, group="bank"))
    lander.finish()


WRITERS = {
    "samples": Writer(lambda data: land_samples(data, watch(1)), lambda data: land_samples(data, watch(3))),
    "readings": Writer(lambda data: land_readings(data, watch(1)), lambda data: land_readings(data, watch(3))),
    "metrics": Writer(
        lambda data: land_metrics(data, replace(past(), problems=())), lambda data: land_metrics(data, past())
    ),
    "calibration": Writer(
        lambda data: land_records(data, replace(PLAN, policy="other"), judge(PLAN.forecast, ObservedChange(), AT)),
        lambda data: land_records(data, PLAN, judge(PLAN.forecast, ObservedChange(), AT)),
    ),
    "snapshots": Writer(
        lambda data: write_snapshot(RunFolder.of(data, AT), "shop", snapshot(capacity=None)),
        lambda data: write_snapshot(RunFolder.of(data, AT), "shop", snapshot()),
    ),
    "policies of a run": Writer(
        policies, lambda data: keep_fleet(read_fleet(data / "policies"), RunFolder.of(data, AT), {"a": "b"})
    ),
}


def visible(data: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(data)): path.read_bytes()
        for path in data.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def leftovers(data: Path) -> list[str]:
    return [path.name for path in data.rglob(".*")]


def disturbed(write: Callable[[Path], object], data: Path, point: int, fault: Callable[[], object]) -> int:
    """Run the writer in a child that comes to ``fault`` at its ``point``-th call; return the child's exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            reached = _arm(data, point, fault)
            write(data)
            code = BORNE if reached else 0
        except StorageError:
            code = REFUSED
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _arm(data: Path, point: int, fault: Callable[[], object]) -> list[str]:
    """Let the fault come at the call; return a list that then has its event."""
    seen, reached = 0, list[str]()
    fsync = os.fsync

    def audited(handle: int) -> None:
        sys.audit("tests.fsync", str(data))
        fsync(handle)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event in EVENTS and _is_change(event, arguments, str(data)):
            seen += 1
            if seen == point:
                reached.append(event)
                fault()

    os.fsync = audited
    sys.addaudithook(hook)
    return reached


def _is_change(event: str, arguments: tuple[Any, ...], data: str) -> bool:
    is_below = any(isinstance(one, str | Path) and str(one).startswith(data) for one in arguments)
    if event in ("os.remove", "os.rmdir"):  # a tree is removed by names below open folders
        return is_below or arguments[-1] != -1
    return is_below and (event != "open" or arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) != 0)


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def check_whole(name: str, data: Path, before: dict[str, bytes], after: dict[str, bytes]) -> None:
    """Every file is as it was before or as it is to be; none that was there is gone, and each can be read."""
    found = visible(data)
    for path, content in found.items():
        assert content in (before.get(path), after.get(path)), path
        if name in KINDS:
            KINDS[name].parse(content, path)
    assert not (before.keys() & after.keys()) - found.keys()


@pytest.mark.parametrize("fault", [killed, full])
@pytest.mark.parametrize("name", WRITERS)
def test_nothing_is_lost_at_any_call_and_the_next_run_is_whole(
    name: str, fault: Callable[[], object], tmp_path: Path
) -> None:
    writer, codes = WRITERS[name], []
    whole = tmp_path / "whole"
    whole.mkdir()
    writer.before(whole)
    before = visible(whole)
    writer.write(whole)
    after = visible(whole)
    for point in range(1, 1_000):
        data = tmp_path / str(point)
        data.mkdir()
        writer.before(data)
        codes.append(disturbed(writer.write, data, point, fault))
        check_whole(name, data, before, after)
        if fault is full:
            assert not leftovers(data)
        if codes[-1] in (0, BORNE):
            assert visible(data) == after
        if codes[-1] == 0:
            break
        writer.write(data)
        assert visible(data) == after
    # Each file is opened, flushed, renamed, and its folder flushed.
    assert len(codes) > 4
    assert set(codes[:-1]) <= ({-signal.SIGKILL} if fault is killed else {REFUSED, BORNE})


def whole_runs(data: Path) -> dict[str, int]:
    """Return how many files each run has that anybody would find."""
    folders = [folder for folder in (data / "runs").iterdir() if is_time_name(folder.name)]
    return {folder.name: len([path for path in folder.rglob("*") if path.is_file()]) for folder in folders}


@pytest.mark.parametrize("fault", [killed, full])
def test_an_old_run_is_there_as_a_whole_or_not_at_all(fault: Callable[[], object], tmp_path: Path) -> None:
    codes = list[int]()
    for point in range(1, 1_000):
        data = tmp_path / str(point)
        for days in (0, 40, 50):
            run = RunFolder.of(data, AT - timedelta(days=days))
            for policy in ("shop", "bank"):
                write_snapshot(run, policy, snapshot())
            os.utime(run.path, (run_s := (AT - timedelta(days=days)).timestamp(), run_s))
        codes.append(disturbed(lambda data: tidy_runs(data, AT - timedelta(days=30)), data, point, fault))
        assert set(whole_runs(data).values()) == {2}, point
        tidy_runs(data, AT - timedelta(days=30))
        assert [folder.name for folder in (data / "runs").iterdir()] == [RunFolder.of(data, AT).path.name]
        if codes[-1] == 0:
            break
    # Each of two runs is renamed, then two files and two folders go.
    assert len(codes) == 11
    assert set(codes[:-1]) == {-signal.SIGKILL if fault is killed else REFUSED}


@pytest.mark.parametrize("ends", [True, False], ids=["killed", "refused"])
@pytest.mark.parametrize("name", WRITERS)
def test_nothing_is_lost_in_the_middle_of_the_bytes(name: str, ends: bool, tmp_path: Path) -> None:
    writer = WRITERS[name]
    whole = tmp_path / "whole"
    whole.mkdir()
    writer.before(whole)
    before = visible(whole)
    writer.write(whole)
    after = visible(whole)
    sizes = [len(content) for path, content in after.items() if before.get(path) != content]
    for limit in (0, 1, min(sizes) // 2, min(sizes) - 1, max(sizes) - 1):
        data = tmp_path / str(limit)
        data.mkdir(exist_ok=True)
        writer.before(data)

        def write(data: Path, limit: int = limit) -> object:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL if ends else signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            return writer.write(data)

        code = disturbed(write, data, 0, full)
        assert code == (-signal.SIGXFSZ if ends else REFUSED)
        check_whole(name, data, before, after)
        if not ends:
            assert not leftovers(data)
        writer.write(data)
        assert visible(data) == after
