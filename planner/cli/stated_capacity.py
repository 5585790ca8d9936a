"""Option ``--capacity``: what a person knows of what one consumer can do."""

from collections.abc import Sequence
from typing import Annotated

import typer

from planner.errors import BadInputError

CapacityOption = Annotated[
    list[str] | None,
    typer.Option(
        "--capacity",
        help="GROUP=MESSAGES_PER_SECOND that one consumer can do, or MESSAGES_PER_SECOND for all groups that show "
        "none; may be repeated.",
        show_default="seen while the group was behind",
    ),
]


def capacities(texts: Sequence[str] | None) -> dict[str | None, float]:
    """Return what ``GROUP=MESSAGES_PER_SECOND`` state, by group; ``None`` has what a figure alone states.

    Raises ``BadInputError`` for anything else.
    """
    stated: dict[str | None, float] = {}
    for text in texts or ():
        group, is_of_group, value = text.rpartition("=")
        try:
            rate = float(value)
        except ValueError:
            rate = 0.0
        if (is_of_group and not group) or not 0 < rate < float("inf"):
            raise BadInputError(
                f"option --capacity: found {text!r}, expected GROUP=MESSAGES_PER_SECOND, or MESSAGES_PER_SECOND for "
                "all groups that show none, above 0"
            )
        stated[group or None] = rate
    return stated
