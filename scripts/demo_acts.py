"""How ``make demo`` acts: it runs DAGs and commands as a user does, and tells what they say."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from scripts.ends import RunFailedError
from scripts.run_local import Settings, dag_process

WATCH_S, WINDOW_S = 15, 62
"""How long the DAG watches: at first nothing is known but what it sees; later the whole window of the policy counts, a
minute at least, in which the load must have been low."""

TOLD = {
    "consumer_planner": {
        "observe": "read the group from its brokers",
        "spark": "Spark: lag history, snapshot, every count simulated, scale or hold, the plan",
        "plan": "the plan is named",
        "report": "write its page",
        "conclude": "every policy was served",
    },
    "consumer_planner_apply": {
        "hand_over": "the plan is handed over to the controller; the task waits without a worker slot",
        "follow": "the plan is at its end",
    },
}
"""What is said as a DAG's tasks end."""


@dataclass
class Teller:
    """Prints lines with the time since the demo began, from any thread; keeps them and how long each act took."""

    begun: float = field(default_factory=time.monotonic)
    began_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    acts: list[tuple[str, float]] = field(default_factory=list)
    lines: list[tuple[float, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, text: str) -> None:
        elapsed_s = time.monotonic() - self.begun
        minutes, seconds = divmod(int(elapsed_s), 60)
        line = f"{minutes}:{seconds:02d}  {text}"
        with self._lock:
            self.lines.append((elapsed_s, line))
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    @contextmanager
    def act(self, name: str) -> Iterator[None]:
        """Count what is done within as one act."""
        begun = time.monotonic()
        yield
        self.acts.append((name, time.monotonic() - begun))

    def tell_acts(self) -> None:
        """Say where the time went."""
        self(f"It took {time.monotonic() - self.begun:.0f} s:")
        for name, seconds in self.acts:
            self(f"  {seconds:4.0f} s  {name}")


@dataclass
class Airflow:
    """Runs DAGs one after the other in a process that woke up once; see ``airflow_process``."""

    settings: Settings
    say: Teller
    _process: "subprocess.Popen[bytes]"
    _events: IO[str]

    def run(self, dag: str, conf: Mapping[str, Any]) -> None:
        """Run a DAG to its end, telling its tasks as they end. Raises ``RunFailedError``."""
        self.say(f"Airflow runs the DAG {dag}")
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # its events say why it ended
            self._process.stdin.write(json.dumps({"dag": dag, "conf": conf}).encode() + b"\n")
        for line in self._events:
            event = json.loads(line)
            if event["event"] == "failed":
                sentence = f"{event['stage']} failed: {event['sentence']} (read {self.settings.log})"
                raise RunFailedError(sentence, event["code"])
            if event["event"] == "ended" and event["is_good"]:
                return
            if event["event"] == "ended":
                break
            if event["event"] == "done" and event["stage"] in TOLD[dag]:
                self.say(f"  {TOLD[dag][event['stage']]}")
        raise RunFailedError(f"Airflow did not get through the DAG {dag}: read {self.settings.log}", 1)


@contextmanager
def airflow_process(settings: Settings, say: Teller) -> Iterator[Airflow]:
    """Give Airflow, which wakes up meanwhile; at the end nothing of it is left."""
    with dag_process(settings) as (process, events):
        yield Airflow(settings, say, process, events)


def planner(*words: str, say: Teller) -> None:
    """Run a command as a user would, and show both. Raises ``RunFailedError`` unless it answered."""
    shown = words[: words.index("--kubeconfig")] if "--kubeconfig" in words else words
    say(f"$ planner {' '.join(shown)}")
    command = [sys.executable, "-m", "planner.cli.main", *words]
    done = subprocess.run(command, cwd=Path.cwd(), capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        say(f"  {line}")
    if done.returncode > 1 or done.stderr:
        raise RunFailedError(done.stderr.strip() or f"planner {words[0]} ended with {done.returncode}", done.returncode)
