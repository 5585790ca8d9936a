"""A controller that is told to end does, whichever thread took the signal and whatever hangs."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.slow

LIMIT_S = 2
CHILD = f"""
import signal, sys, threading, time
from planner.controller import main, process

def other() -> None:
    sys.stdin.readline()
    time.sleep(1.0)  # until the main thread waits
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    sys.stdin.readline()

match sys.argv.pop():
    case "elsewhere":
        threading.Thread(target=other, daemon=True).start()
    case "left":
        threading.Thread(target=threading.Event().wait).start()
    case "stuck":
        process.LAST_S = {LIMIT_S}
        process._join = lambda *_: threading.Event().wait()
main.main()
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """A file that names a server that is not there."""
    content = {
        "clusters": [{"name": "gone", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "nobody", "user": {"token": "none"}}],
        "contexts": [{"name": "it", "context": {"cluster": "gone", "user": "nobody"}}],
        "current-context": "it",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


@contextmanager
def begun(kubeconfig: Path, kind: str) -> Iterator[subprocess.Popen[str]]:
    """Start a controller, and yield it once it waits for its end."""
    options = ["--namespace", "shop", "--kubeconfig", str(kubeconfig), "--listen-address", "127.0.0.1"]
    ports = ["--health-port", "0", "--metrics-port", "0"]
    pipe, environment = subprocess.PIPE, {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    words = [sys.executable, "-c", CHILD, *options, *ports, kind]
    with subprocess.Popen(
        words, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=environment
    ) as child:
        assert child.stdout is not None
        try:
            assert any("controller begins" in line for line in child.stdout)
            yield child
        finally:
            child.kill()


def test_a_signal_that_another_thread_took_is_noticed(kubeconfig: Path) -> None:
    """The kernel gives it to any thread that does not block it, and that one wakes nobody."""
    with begun(kubeconfig, "elsewhere") as child:
        said, _ = child.communicate("now\n", timeout=120)
    assert child.returncode == 0, said
    assert "controller ends" in said


def test_a_thread_that_never_ends_does_not_keep_it(kubeconfig: Path) -> None:
    with begun(kubeconfig, "left") as child:
        child.send_signal(signal.SIGTERM)
        said, _ = child.communicate(timeout=120)
    assert child.returncode == 0, said
    assert "controller ends" in said
    assert "Timeout" not in said


def test_an_end_that_hangs_is_named_and_left(kubeconfig: Path) -> None:
    with begun(kubeconfig, "stuck") as child:
        child.send_signal(signal.SIGTERM)
        said, _ = child.communicate(timeout=120)
    assert child.returncode == 1, said
    assert "controller ends" not in said
    assert f"Timeout (0:00:0{LIMIT_S})!" in said
    assert "threading.py" in said, "where each thread stands"
