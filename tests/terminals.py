"""A program on a pseudo-terminal: what a person sees there, and what a person types."""

import contextlib
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

PATIENCE_S: Final = 120.0
"""A busy machine may take its time; a program that waits for nothing else has answered by then."""

END_OF_INPUT: Final = "\x04"
"""What Ctrl-D sends."""


class Terminal:
    """``planner`` with these arguments on a terminal of its own; ``stdout`` may go to a file instead.

    A context manager: leaving it ends the program.
    """

    def __init__(self, *arguments: object, env: Mapping[str, str], cwd: Path, stdout: Path | None = None) -> None:
        self._ours, theirs = pty.openpty()
        self.screen = ""
        self._shown = 0
        with contextlib.ExitStack() as opened:
            out = opened.enter_context(stdout.open("wb")) if stdout else theirs
            self._process = subprocess.Popen(
                [sys.executable, "-m", "planner.cli.main", *map(str, arguments)],
                stdin=theirs,
                stdout=out,
                stderr=theirs,
                env={**os.environ, "PYTHONPATH": str(Path.cwd()), "TERM": "dumb", **env},
                cwd=cwd,
                start_new_session=True,
            )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def expect(self, text: str) -> str:
        """Return what is shown since the last call up to and with ``text``; fail where it does not come."""
        until = time.monotonic() + PATIENCE_S
        while (at := self.screen.find(text, self._shown)) < 0:
            assert self._read(until), f"{text!r} was not shown, but: {self.screen[self._shown :]}"
        begin, self._shown = self._shown, at + len(text)
        return self.screen[begin : self._shown]

    def enter(self, line: str) -> None:
        """Type a line."""
        self.press(f"{line}\n")

    def press(self, keys: str) -> None:
        """Type these characters."""
        os.write(self._ours, keys.encode())

    def end(self) -> int:
        """Return the exit code once the program has ended; ``screen`` has all that it showed."""
        until = time.monotonic() + PATIENCE_S
        while self._read(until):
            pass
        return self._process.wait(PATIENCE_S)

    def _read(self, until: float) -> bool:
        """Add what is shown next; return False at the end, or when the patience is over."""
        if not select.select([self._ours], [], [], max(0.0, until - time.monotonic()))[0]:
            return False
        try:
            shown = os.read(self._ours, 65_536)
        except OSError:  # Linux: nobody has the other side open any more
            return False
        self.screen += shown.decode(errors="replace")
        return bool(shown)
