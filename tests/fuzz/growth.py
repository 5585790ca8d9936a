"""Growth of a corpus: inputs that reach an arc between two lines of a reader that none before has reached are kept.

``sys.monitoring`` is of Python 3.12; ``sys.settrace`` costs a factor of some ten and needs nothing that is not there.
"""

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from tests.fuzz.engine import Reader, attempt, bounded, case, corpus_file, encoded, inputs, kept

Arc = tuple[str, int, int]
MOST_KEPT: Final = 40
MOST_BYTES: Final = 2_000
"""Of one kept input: what needs more has a short cousin."""
MOST_BYTES_IN_ALL: Final = 6_000
"""Of what one growth adds to a reader's corpus: all corpora together stay small enough to be read and kept in Git."""


def arcs_of(reader: Reader, data: bytes) -> set[Arc]:
    """Return (file, line before, line) of every step between two lines of the reader's modules."""
    arcs: set[Arc] = set()
    last: dict[FrameType, int] = {}
    is_ours: dict[str, bool] = {}

    def calls(frame: FrameType, _: str, __: Any) -> Callable[..., Any] | None:
        name = frame.f_globals.get("__name__", "")
        if name not in is_ours:
            is_ours[name] = name.startswith(reader.modules)
        if not is_ours[name]:
            return None
        last[frame] = 0
        return lines

    def lines(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        if event == "line":
            arcs.add((frame.f_code.co_filename, last.get(frame, 0), frame.f_lineno))
            last[frame] = frame.f_lineno
        elif event == "return":
            last.pop(frame, None)
        return lines

    sys.settrace(calls)
    try:
        attempt(reader, data)
    finally:
        sys.settrace(None)
    return arcs


def grow(reader: Reader, seconds: float, seed: int) -> tuple[int, int, int]:
    """Add to the reader's kept corpus for so long; return cases run, inputs added, and arcs known at the end."""
    known = list(inputs(reader.name, reader.seeds))
    kept_before = kept(reader.name)
    added: list[bytes] = []
    number, until, room = 0, time.monotonic() + seconds, MOST_BYTES_IN_ALL
    with bounded():
        reached = set().union(*(arcs_of(reader, data) for data in known))
        while time.monotonic() < until and len(kept_before) + len(added) < MOST_KEPT:
            data = case(reader, seed, number, known)
            number += 1
            if len(data) <= min(MOST_BYTES, room) and (new := arcs_of(reader, data) - reached):
                reached |= new
                room -= len(data)
                known.append(data)
                added.append(data)
    if added:
        lines = [encoded(data) for data in (*kept_before, *added)]
        corpus_file(reader.name).parent.mkdir(exist_ok=True)
        corpus_file(reader.name).write_text("\n".join(lines) + "\n")
    return number, len(added), len(reached)
