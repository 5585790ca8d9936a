"""What every step must make sense of: a limit, names, and the phrase that allows an offset to be written."""

from collections.abc import Sequence


def check_limit(kind: str, seconds: int) -> None:
    """Raise ``ValueError`` unless the time limit is 1 s or more."""
    if seconds < 1:
        raise ValueError(f"{kind} to have a time limit of 1 s at least, not {seconds} s")


def check_names(kind: str, what: str, names: Sequence[str]) -> None:
    """Raise ``ValueError`` unless there are names, none of them empty and none twice."""
    if not names or not all(names) or len(set(names)) < len(names):
        raise ValueError(f"{kind} to have {what} with names, each once, not {', '.join(map(repr, names)) or 'none'}")


def check_phrase(kind: str, confirmation: str, phrase: str) -> None:
    """Raise ``ValueError`` unless the confirmation is the phrase that says what is done to whom."""
    if confirmation != phrase:
        raise ValueError(f"{kind} to have the confirmation {phrase!r}, not {confirmation!r}")
