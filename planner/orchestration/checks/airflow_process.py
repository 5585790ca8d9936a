"""Ask the process ``inside``, which imports Airflow, and end it with everything that it started."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from planner.errors import OutOfReachError

_INSIDE: Final = "planner.orchestration.checks.inside"
_QUOTED: Final = 300


def ask_airflow(question: str, within_s: float) -> dict[str, Any]:
    """Return what the process answers. Raises ``OutOfReachError`` with its last words when it has none in time."""
    with tempfile.TemporaryDirectory(prefix="planner-check-") as folder:
        answer, output = Path(folder) / "answer.json", Path(folder) / "output"
        code = _run([sys.executable, "-m", _INSIDE, str(answer), question], output, within_s)
        if code is None:
            raise OutOfReachError(
                f"{question}: no end within {within_s:g} s: see whether the master is up and has room, or give it more "
                f"by --spark-seconds; the last line was {_last_line(output)!r}"
            )
        if not answer.exists():
            raise OutOfReachError(
                f"{question}: Airflow ended with {_last_line(output)!r}: correct that, then try again"
            )
        result: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        return result


def _run(command: list[str], output: Path, within_s: float) -> int | None:
    """Return the exit code, ``None`` when it took too long."""
    with (
        output.open("wb") as written,
        # A session of its own, so that spark-submit's JVM ends with it.
        subprocess.Popen(  # noqa: S603
            command,
            env=os.environ | {"AIRFLOW__LOGGING__COLORED_CONSOLE_LOG": "False"},
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            return process.wait(within_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _last_line(output: Path) -> str:
    lines = output.read_text(encoding="utf-8", errors="replace").split("\n")
    line = next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
    return line if len(line) <= _QUOTED else line[:_QUOTED] + "…"
