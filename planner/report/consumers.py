"""How a consumer is recognised in every drawing: a short code and one of eight colours."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

COLOURS = 8
"""As many as stay apart for colour-blind readers; further consumers repeat them, the code distinguishes them."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One consumer's code and colour (0 to ``COLOURS`` - 1); ``is_new`` when it does not run yet."""

    code: str
    colour: int
    is_new: bool
    client: str


NOBODY = Mark("–", -1, False, "nobody")


class Marks:
    """The marks of all consumers, running ones in client order first, newcomers after them."""

    def __init__(self, running: Sequence[str], after: Iterable[str]) -> None:
        newcomers = [client for client in dict.fromkeys(after) if client not in set(running)]
        self._marks = {client: Mark(letters(n), n % COLOURS, False, client) for n, client in enumerate(running)}
        for n, client in enumerate(newcomers):
            self._marks[client] = Mark(f"+{n + 1}", (len(running) + n) % COLOURS, True, client)

    def __getitem__(self, client: str | None) -> Mark:
        """Return the consumer's mark; ``NOBODY`` for ``None`` and for a name that is neither running nor new."""
        return NOBODY if client is None else self._marks.get(client, Mark("?", -1, False, client))

    def __iter__(self) -> Iterator[Mark]:
        return iter(self._marks.values())


def letters(position: int) -> str:
    """Return A to Z, then AA, AB and so on."""
    code = ""
    left = position + 1
    while left:
        left, rest = divmod(left - 1, 26)
        code = chr(ord("A") + rest) + code
    return code
