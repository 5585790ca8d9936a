"""What every step must make sense of: a limit, names, and the phrase that allows an offset to be written."""

from collections.abc import Sequence
from typing import Final

MOST_LIMIT_S: Final = 604_800
"""Seven days; no step of ours asks for more than one, and a time beyond the year 9999 cannot be counted to."""


def check_limit(kind: str, seconds: int) -> None:
    """Raise ``ValueError`` unless the time limit is from 1 s to ``MOST_LIMIT_S``."""
    if not 1 <= seconds <= MOST_LIMIT_S:
        raise ValueError(f"{kind} to have a time limit from 1 s to {MOST_LIMIT_S} s, not {seconds} s")


def scaled_limit(seconds: int, rounds: int) -> int:
    """Return the time limit, in seconds, of a step that takes so many rounds of ``seconds`` each."""
    return min(seconds * rounds, MOST_LIMIT_S)


def check_names(kind: str, what: str, names: Sequence[str]) -> None:
    """Raise ``ValueError`` unless there are names, none of them empty and none twice."""
    if not names or not all(names) or len(set(names)) < len(names):
        raise ValueError(f"{kind} to have {what} with names, each once, not {', '.join(map(repr, names)) or 'none'}")


def check_phrase(kind: str, confirmation: str, phrase: str) -> None:
    """Raise ``ValueError`` unless the confirmation is the phrase that says what is done to whom."""
    if confirmation != phrase:
        raise ValueError(f"{kind} to have the confirmation {phrase!r}, not {confirmation!r}")
