"""A terminal's recording in asciicast v2, and its player: ``python -m scripts.cast docs/demo/demo.cast``.

``asciinema play`` reads the same file. The form: https://docs.asciinema.org/manual/asciicast/v2/
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from planner.errors import BadInputError
from planner.storage.files import write_atomically
from scripts.ends import exit_code_of

WIDTH, HEIGHT = 120, 36
LONGEST_IDLE_S = 2.0
"""A player waits for no longer than that between two lines."""


@dataclass(frozen=True)
class Cast:
    """A recording: its title, when it began, and (seconds since then, text) in order."""

    title: str
    began_at: datetime
    lines: Sequence[tuple[float, str]]

    def write(self, path: Path) -> Path:
        """Write it to ``path`` and return that."""
        header = {
            "version": 2,
            "width": WIDTH,
            "height": HEIGHT,
            "timestamp": int(self.began_at.timestamp()),
            "idle_time_limit": LONGEST_IDLE_S,
            "title": self.title,
        }
        events = [[round(seconds, 3), "o", f"{text}\r\n"] for seconds, text in self.lines]
        rows = [json.dumps(row, ensure_ascii=False) for row in (header, *events)]
        return write_atomically(path, "\n".join(rows) + "\n")


def play(path: Path, speed: float = 1.0) -> None:
    """Print a recording at its own pace, shortened as its header says. Raises ``BadInputError`` for another file."""
    try:
        header, *events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        longest_s = float(header["idle_time_limit"])
        texts = [(float(at), str(text)) for at, kind, text in events if kind == "o"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"{path} is no asciicast v2: name a .cast file, such as docs/demo/demo.cast") from error
    before = 0.0
    for at, text in texts:
        time.sleep(min(max(0.0, at - before), longest_s) / speed)
        sys.stdout.write(text)
        sys.stdout.flush()
        before = at


if __name__ == "__main__":
    sys.exit(exit_code_of(lambda: play(Path(sys.argv[1]), float(*sys.argv[2:3] or ["1"]))))
