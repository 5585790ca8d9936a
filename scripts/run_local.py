"""``make run``: the scheduled DAG through Airflow and local Spark, on the bundled capture.

Airflow has a home of its own in the checkout's ignored ``work`` folder and runs in a process of its own
(``scripts.run_dag``), whose noise goes to a log file. That process says line by line what happens, and we tell it.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import BadInputError
from planner.orchestration.checks.java import check_java
from planner.policies.fleet import read_fleet
from planner.runs.policy_stages import read_decision
from planner.sources.capture import Capture, open_capture
from planner.storage.layout import RunFolder
from scripts.ends import RunFailedError, exit_code_of

ROOT = Path(__file__).resolve().parents[1]
STOP_WITHIN_S = 5.0

STAGES = {
    "prepare": "Airflow wakes up; on the first run it makes its database",
    "observe": "land the raw samples of every group",
    "spark": "history, snapshot, simulate, decide, plan: one Spark app",
    "plan": "name decisions and plans",
    "report": "write the pages",
    "offer": "offer plans for approval; those of a recording to nobody",
    "conclude": "name every policy that was not served",
}

SPARK, LAST = "spark", "conclude"


@dataclass(frozen=True)
class Settings:
    """What is run on what, and the folder that everything is written to; ``java_options`` are for Spark's JVMs."""

    policies: Path
    capture: Path
    work: Path
    # A short-lived JVM: quick to start is worth more than fast in the long run.
    java_options: tuple[str, ...] = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

    @property
    def data(self) -> Path:
        """Samples, history and runs."""
        return self.work / "data"

    @property
    def airflow_home(self) -> Path:
        """Airflow's own settings and database."""
        return self.work / "airflow"

    @property
    def log(self) -> Path:
        """What Airflow and Spark had to say."""
        return self.work / "run.log"


def main() -> int:
    """Run with the arguments of the command line; return the exit code."""
    return exit_code_of(lambda: run(_settings()))


def _settings() -> Settings:
    parser = argparse.ArgumentParser(prog="scripts.run_local", description="Run the scheduled DAG on a capture.")
    parser.add_argument("--policies", type=Path, default=ROOT / "examples" / "policies", help="folder of policies")
    parser.add_argument("--capture", type=Path, default=ROOT / "examples" / "captures" / "two-brokers-day")
    parser.add_argument("--work", type=Path, default=ROOT / "work", help="folder that everything is written to")
    given = parser.parse_args()
    return Settings(given.policies.resolve(), given.capture.resolve(), given.work.resolve())


def run(settings: Settings) -> None:
    """Check what is needed, run the DAG, tell what was decided. Raises ``PlannerError``."""
    check_java()
    policies, capture = read_fleet(settings.policies).policies, open_capture(settings.capture)
    _say(_introduction(capture))
    settings.airflow_home.mkdir(parents=True, exist_ok=True)
    run_folder = RunFolder.of(settings.data, capture.header.ended_at)
    with dag_process(settings, json.dumps(_conf(settings, capture))) as (process, events):
        unserved = _follow(events, settings.log, run_folder)
        if process.wait() != 0 and unserved is None:
            raise RunFailedError(f"Airflow ended early: read {settings.log}", 1)
    for policy in policies:
        _tell(policy, run_folder)
    if unserved is not None:
        raise unserved


def _introduction(capture: Capture) -> str:
    header = capture.header
    minutes = (header.ended_at - header.started_at).total_seconds() / 60
    return (
        f"Capture {capture.folder.name}: {header.samples} samples of {', '.join(header.groups)}, {minutes:.0f} minutes "
        f"up to {header.ended_at:%Y-%m-%d %H:%M:%S} UTC"
    )


# The process that Airflow runs in.


@contextmanager
def dag_process(settings: Settings, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], IO[str]]]:
    """Yield the process that runs DAGs, ``scripts.run_dag`` with these words, and its events.

    At the end nothing that it started is left. An event is a JSON line; the process reads a pipe.
    """
    reading, writing = os.pipe()
    with settings.log.open("wb") as log, os.fdopen(reading, encoding="utf-8") as events:
        process = subprocess.Popen(
            [sys.executable, "-m", "scripts.run_dag", str(writing), *words],
            cwd=ROOT,
            env=os.environ | environment(settings),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[writing],
            start_new_session=True,  # Ctrl-C reaches us alone, and we stop the whole session
            bufsize=0,
        )
        os.close(writing)
        with process:
            try:
                yield process, events
            finally:
                stop_session(process)


def _conf(settings: Settings, capture: Capture) -> dict[str, Any]:
    return {
        "policies": str(settings.policies),
        "data": str(settings.data),
        "source": "recording",
        "recording": str(settings.capture),
        "since": capture.header.started_at.isoformat(),
        "until": capture.header.ended_at.isoformat(),
        "pages": "all",
    }


def environment(settings: Settings) -> dict[str, str]:
    """Return what Airflow and Spark need to run here: embedded defaults, no accounts, no telemetry, no examples."""
    dags = {
        "name": "consumer-planner",
        "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
        "kwargs": {"path": str(ROOT / "dags")},
    }
    scripts = str(Path(sys.executable).parent)
    return {
        "AIRFLOW_HOME": str(settings.airflow_home),
        # Airflow's processes write to one file: on a busy machine one waits longer for another than the usual 5 s.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{settings.airflow_home.resolve()}/airflow.db?timeout=300",
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([dags]),
        "AIRFLOW__LOGGING__COLORED_CONSOLE_LOG": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "SCARF_ANALYTICS": "false",
        # Another master is one connection away; the caller's own wins.
        "AIRFLOW_CONN_SPARK_DEFAULT": os.environ.get(
            "AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[*]"})
        ),
        "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore",
        "SPARK_SUBMIT_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", shlex.join(settings.java_options)),
        # Spark's own search for it trips over a blank in the path of Python.
        "SPARK_HOME": _folder_of("pyspark"),
        "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
    }


def _folder_of(package: str) -> str:
    """Return where a package is installed, without importing it. Raises ``BadInputError`` when it is not."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise BadInputError(f"{package} is not installed: run make setup")
    return str(spec.submodule_search_locations[0])


def stop_session(process: subprocess.Popen[bytes]) -> None:
    """End every process of the session that ``process`` leads: first politely, then for certain."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + STOP_WITHIN_S
        for pid in _session(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        while time.monotonic() < deadline:
            process.poll()
            if not _session(process.pid):
                return
            time.sleep(0.05)


def _session(leader: int) -> list[int]:
    import psutil

    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.Error):
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


# What the user sees.


def _follow(events: IO[str], log: Path, run_folder: RunFolder) -> RunFailedError | None:
    """Tell the tasks as they begin and end; return the failure of the last one, which names who was not served.

    Below the Spark task stand the figures of its stages. Raises ``RunFailedError`` for any other task that fails.
    """
    begun = time.monotonic()
    for line in events:
        event = json.loads(line)
        seconds = f"{time.monotonic() - begun:6.1f} s"
        match event["event"]:
            case "begun":
                begun = time.monotonic()
                number = list(STAGES).index(event["stage"])
                _say(f"[{number}/{len(STAGES) - 1}] {event['stage']:<9} {STAGES[event['stage']]:<58}", end="")
            case "done":
                _say(seconds)
                if event["stage"] == SPARK:
                    _say_figures(run_folder)
            case _:
                _say(f"{seconds}  failed")
                failure = RunFailedError(
                    f"{event['stage']} failed: {event['sentence']} (all of it: {log})", event["code"]
                )
                if event["stage"] != LAST:
                    raise failure
                return failure
    return None


def _say_figures(run_folder: RunFolder) -> None:
    """Say what each stage of the Spark app read and wrote, and how long it took."""
    for report in json.loads(run_folder.stages.read_text(encoding="utf-8")):
        read, written = (
            ", ".join(f"{count} {noun}" for noun, count in report[side].items()) for side in ("read", "written")
        )
        _say(f"      {report['stage']:<9} {f'{read} -> {written}':<58}{report['seconds']:6.1f} s")


def _tell(policy: ConsumerScalingPolicy, run_folder: RunFolder) -> None:
    """Say what was decided as one sentence, and where plan and report are."""
    files = run_folder.policy(policy.metadata.name)
    _say("")
    if not files.decision.exists():
        reason = files.no_decision
        sentence = reason.read_text(encoding="utf-8").strip() if reason.exists() else "No decision."
        _say(f"{policy.metadata.name}: {sentence}")
        return
    _say(f"{policy.metadata.name}: {read_decision(files.decision).decision.reason}")
    _say(f"plan:   {files.plan}" if files.plan.exists() else f"decision (nothing to do): {files.decision}")
    _say(f"report: {files.report}")


def _say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
