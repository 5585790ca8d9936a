"""The one console of all commands: what it prints is text, never markup, and no character of it steers the terminal."""

from typing import Any

from rich.console import Console
from rich.segment import Segment
from rich.status import Status
from rich.text import Text

from planner.text.printable import one_line, printable


class Screen(Console):
    """A console for text that others wrote: names of groups and clients, reasons of plans, answers of brokers.

    A string is shown as it stands: ``[bold]`` is six letters, emphasis comes with ``style`` or as ``Text``. Printed
    alone it is one line, so that a line break in a name begins no sentence of ours; cells of tables may have several.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, **settings})

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print as ``rich`` does, each string as one line."""
        super().print(*(one_line(item) if isinstance(item, str) else item for item in objects), **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        """Return the string as text, its control characters visible before anything is measured."""
        return super().render_str(printable(text), **settings)

    def render(self, *arguments: Any, **settings: Any) -> Any:
        """Yield the pieces of whatever is printed; here ``Text`` passes, too, which no string of ``render_str`` was."""
        for segment in super().render(*arguments, **settings):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Leave it to the command line, which ends with 0 where a pipe's reader went away; ``rich`` ends with 1."""
        raise BrokenPipeError

    def status(self, status: Any, **settings: Any) -> Status:
        """Return what shows that a command is at work; ``rich`` would take markup out of a string here."""
        return super().status(Text(status) if isinstance(status, str) else status, **settings)
