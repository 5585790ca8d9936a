"""Processes, ports, directories and caches of the launchers, tried on programs that need no broker."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clusters import ports
from tests.clusters.artifacts import Coordinate, cache_root, cached, class_path, find_program
from tests.clusters.errors import CannotRunHereError, ClusterError, NoSuchArtifactError, StartFailedError
from tests.clusters.processes import ManagedProcess, stop_together
from tests.clusters.workspace import workspace

REPOSITORY = Path(__file__).parents[2]
DEADLINE_S = 180.0


def python(directory: Path, code: str, name: str = "child") -> ManagedProcess:
    """A process that runs ``code`` and whose output is not buffered."""
    return ManagedProcess(name, [sys.executable, "-u", "-c", code], directory)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """False once a process is gone or only its exit code is left."""
    try:
        return state(pid) != "Z"
    except FileNotFoundError:
        return False


def state(pid: int) -> str:
    """The kernel's letter for what a process does: R, S, T (stopped), Z ..."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_root()


def test_last_words_of_a_process_that_ends_early_are_in_the_error(tmp_path: Path) -> None:
    child = python(tmp_path, "print('disk is full'); raise SystemExit(3)")
    child.start()
    with pytest.raises(StartFailedError, match=r"(?s)child ended with 3 before.*disk is full"):
        child.wait_for_line("ready", DEADLINE_S)


def test_a_program_that_is_not_there_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(StartFailedError, match=r"child cannot be started: ./absent: .*No such file"):
        ManagedProcess("child", ["./absent"], tmp_path).start()


def test_a_silent_process_is_given_up_with_its_log_tail(tmp_path: Path) -> None:
    child = python(tmp_path, "import time; print('still loading'); time.sleep(600)")
    child.start()
    child.wait_for_line("still loading", DEADLINE_S)
    with pytest.raises(StartFailedError, match=r"(?s)no the line 'ready' within 0.2 s.*still loading"):
        child.wait_for_line("ready", 0.2)
    child.kill()


def test_a_second_run_is_not_ready_by_the_line_of_the_first(tmp_path: Path) -> None:
    child = python(tmp_path, "import os; print('ready' if not os.path.exists('ran') else 'no'); open('ran', 'w')")
    child.start()
    child.wait_for_line("ready", DEADLINE_S)
    child.stop()
    child.start()
    with pytest.raises(StartFailedError, match="child ended with 0"):
        child.wait_for_line("ready", DEADLINE_S)


def test_a_process_that_ignores_sigterm_is_killed_after_its_grace(tmp_path: Path) -> None:
    child = python(tmp_path, "import signal; signal.signal(15, signal.SIG_IGN); print('ready'); signal.pause()")
    child.start()
    child.wait_for_line("ready", DEADLINE_S)
    assert child.stop(grace_s=0.2) == -signal.SIGKILL


def test_a_frozen_process_stands_still_and_can_still_be_stopped(tmp_path: Path) -> None:
    child = python(tmp_path, "import signal; print('ready'); signal.pause()")
    child.start()
    child.wait_for_line("ready", DEADLINE_S)
    child.freeze()
    wait_until(lambda: state(child.pid) == "T")
    assert child.running
    assert child.stop() == -signal.SIGTERM


def test_all_of_one_rank_are_asked_before_any_is_waited_for(tmp_path: Path) -> None:
    # The first obeys only after the second was asked: waiting for it first would end in SIGKILL.
    patient = "while not os.path.exists('asked'): time.sleep(0.01)\n    sys.exit(0)"
    quick = "open('asked', 'w')\n    sys.exit(0)"
    children = [
        python(
            tmp_path,
            "import os, signal, sys, time\n"
            f"def obey(*_):\n    {how}\n"
            "signal.signal(15, obey); print('ready')\nwhile True: time.sleep(1)",
            name,
        )
        for name, how in (("patient", patient), ("quick", quick))
    ]
    for child in children:
        child.start()
        child.wait_for_line("ready", DEADLINE_S)
    stop_together(children, grace_s=DEADLINE_S)
    assert [child.returncode for child in children] == [0, 0]


def test_a_process_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    child = python(tmp_path, "import signal; print('ready'); signal.pause()")
    starter = threading.Thread(target=child.start)
    starter.start()
    starter.join()
    child.wait_for_line("ready", DEADLINE_S)
    wait_until(lambda: starter.native_id is not None and not Path(f"/proc/self/task/{starter.native_id}").exists())
    assert child.running
    child.kill()


def test_kill_9_of_the_owner_ends_its_processes_frozen_ones_too(tmp_path: Path) -> None:
    owner = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time; from pathlib import Path; from tests.clusters.processes import ManagedProcess\n"
            f"pair = [ManagedProcess(n, ['sleep', '600'], Path({str(tmp_path)!r})) for n in 'ab']\n"
            "for one in pair: one.start()\n"
            "pair[0].freeze(); print(*(one.pid for one in pair), flush=True); time.sleep(600)",
        ],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout
    with owner.stdout:
        pids = [int(word) for word in owner.stdout.readline().split()]
    assert len(pids) == 2
    assert all(is_alive(pid) for pid in pids)
    owner.kill()
    owner.wait()
    wait_until(lambda: not any(is_alive(pid) for pid in pids))


def test_leased_ports_are_given_to_nobody_else_until_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "FIRST", 32_000)
    monkeypatch.setattr(ports, "LAST", 32_007)
    first, second = ports.lease_block(), ports.lease_block()
    assert sorted(first.ports + second.ports) == list(range(32_000, 32_008))
    with pytest.raises(CannotRunHereError, match="no 4 free neighbouring ports between 32000 and 32007"):
        ports.lease_block()
    first.release()
    third = ports.lease_block()
    assert third.ports == first.ports
    second.release()
    third.release()


def test_a_block_with_one_port_in_use_is_not_leased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "FIRST", 32_008)
    monkeypatch.setattr(ports, "LAST", 32_011)
    with socket.create_server(("127.0.0.1", 32_010)), pytest.raises(CannotRunHereError):
        ports.lease_block()
    ports.lease_block().release()


def test_another_process_does_not_get_the_ports_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "FIRST", 32_012)
    monkeypatch.setattr(ports, "LAST", 32_015)
    lease = ports.lease_block()
    other = [
        sys.executable,
        "-c",
        "from tests.clusters import ports; ports.FIRST, ports.LAST = 32012, 32015; ports.lease_block()",
    ]
    run = subprocess.run(other, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert "CannotRunHereError: ports: no 4 free" in run.stderr
    lease.release()
    assert subprocess.run(other, cwd=REPOSITORY, check=False).returncode == 0


def test_a_workspace_is_deleted_when_done_and_others_leave_it_alone_before() -> None:
    with workspace("mine") as mine:
        (mine / "data").write_text("x")
        with workspace("other"):
            assert (mine / "data").exists()
    assert not mine.exists()


def test_what_a_killed_owner_left_is_deleted_by_the_next_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Apart from other test runs: the next workspace of any of them would delete it before we have looked.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    code = "from tests.clusters.workspace import workspace; w = workspace('dead'); print(w.__enter__(), flush=True)"
    abandon = f"{code}; import os; os.kill(os.getpid(), 9)"
    run = subprocess.run([sys.executable, "-c", abandon], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    left = Path(run.stdout.strip())
    assert left.is_dir()
    with workspace("next"):
        assert not left.exists()


def test_a_failed_build_leaves_nothing_and_a_good_one_happens_once(empty_cache: Path) -> None:
    builds = []

    def build(fresh: Path) -> None:
        (fresh / "half").write_text("done")
        builds.append(fresh)
        if len(builds) == 1:
            raise StartFailedError("power cut")

    with pytest.raises(StartFailedError, match="power cut"):
        cached("kind", "digest", build)
    assert not [path for path in (empty_cache / "kind").iterdir() if path.is_dir()]
    assert cached("kind", "digest", build) == cached("kind", "digest", build) == empty_cache / "kind" / "digest"
    assert len(builds) == 2


def test_a_program_that_is_not_installed_is_named() -> None:
    with pytest.raises(CannotRunHereError, match="no-such-program: not found on PATH"):
        find_program("no-such-program")


@pytest.mark.cluster
def test_an_unreachable_registry_means_cannot_run_here(
    empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_program("mvn")
    proxies = " ".join(f"-D{kind}.proxyHost=127.0.0.1 -D{kind}.proxyPort=1" for kind in ("http", "https"))
    monkeypatch.setenv("MAVEN_OPTS", f"-Dmaven.repo.local={tmp_path / 'empty'} {proxies}")
    with pytest.raises(CannotRunHereError, match="maven artifacts: "):
        class_path("jars", [Coordinate("org.slf4j", "slf4j-api", "2.0.16")])
    assert not [path for path in (empty_cache / "jars").iterdir() if path.is_dir()]


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A function that puts a ``mvn`` of the given shell lines first on PATH."""

    def install(script: str) -> None:
        program = tmp_path / "bin" / "mvn"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)

    return install


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Could not find artifact g:a:jar:1 in some-mirror", NoSuchArtifactError),
        ("g:a:jar:1 was not found in some-mirror during a previous attempt", NoSuchArtifactError),
        ("Could not transfer artifact g:a:pom:1 from/to some-mirror: Connection refused", CannotRunHereError),
        ("No plugin found for prefix 'dependency'", CannotRunHereError),
    ],
)
@pytest.mark.usefixtures("empty_cache")
def test_only_what_the_registry_denies_is_no_reason_to_skip(
    maven: Callable[[str], None], said: str, kind: type[Exception]
) -> None:
    maven(f'echo "[ERROR] {said}"; echo "[ERROR] more"; exit 1')
    # Not raises(kind): a CannotRunHereError that got through would skip this test.
    with pytest.raises(ClusterError, match=said) as caught:
        class_path("jars", [Coordinate("g", "a", "1")])
    assert caught.type is kind


@pytest.mark.usefixtures("empty_cache")
def test_a_jar_that_vanished_from_the_cache_is_fetched_again(maven: Callable[[str], None]) -> None:
    maven(
        'for word; do case "$word" in -DoutputDirectory=*) jars="${word#*=}";; -Dmdep.outputFile=*) list="${word#*=}";;'
        ' esac; done; touch "$jars/b.jar" "$jars/a.jar"; printf /m2/b.jar:/m2/a.jar > "$list"'
    )
    jars = class_path("jars", [Coordinate("g", "b", "1")])
    assert [jar.name for jar in jars] == ["b.jar", "a.jar"]
    jars[1].unlink()
    assert class_path("jars", [Coordinate("g", "b", "1")]) == jars
    assert all(jar.is_file() for jar in jars)


@pytest.mark.cluster
@pytest.mark.usefixtures("empty_cache")
def test_real_jars_come_with_what_they_need_and_absent_versions_do_not_come() -> None:
    jars = class_path("jars", [Coordinate("org.slf4j", "slf4j-simple", "2.0.16")])
    assert [jar.name for jar in jars] == ["slf4j-simple-2.0.16.jar", "slf4j-api-2.0.16.jar"]
    assert all(jar.is_file() for jar in jars)
    # The registry has just answered: what it lacks is misspelt, not out of reach.
    with pytest.raises(ClusterError, match=r"slf4j-api:jar:0\.0\.0-absent") as caught:
        class_path("jars", [Coordinate("org.slf4j", "slf4j-api", "0.0.0-absent")])
    assert caught.type is NoSuchArtifactError


@pytest.mark.parametrize(("required", "verdict"), [("", "2 skipped"), ("1", "1 failed, 1 error")])
def test_a_missing_need_skips_by_name_and_fails_where_clusters_are_required(
    tmp_path: Path, required: str, verdict: str
) -> None:
    lack = "raise CannotRunHereError('chromium', 'not installed')"
    (tmp_path / "test_it.py").write_text(
        "import pytest\nfrom tests.clusters.errors import CannotRunHereError\n"
        f"@pytest.fixture\ndef page():\n    {lack}\n"
        "def test_lacks_a_fixture(page):\n    pass\n"
        f"def test_lacks_something():\n    {lack}\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-rsfE"]
    run = subprocess.run(
        [*command, "-c", os.devnull, f"--rootdir={tmp_path}", str(tmp_path)],
        cwd=REPOSITORY,
        env={**os.environ, "REQUIRE_CLUSTERS": required},
        capture_output=True,
        text=True,
        check=False,
    )
    assert verdict in run.stdout
    assert "test_it.py::test_lacks_a_fixture needs chromium: not installed" in run.stdout
    assert "test_it.py::test_lacks_something needs chromium: not installed" in run.stdout
