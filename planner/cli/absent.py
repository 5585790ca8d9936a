"""Commands of the design that this version does not have: each says so by name."""

from collections.abc import Callable

import typer

from planner import __version__
from planner.errors import BadInputError

ABSENT = {
    "backtest": "there are no baselines to compare with yet",
}


def epilog() -> str:
    """Return the help's last line."""
    return f"Not built yet in {__version__}: {', '.join(ABSENT)}."


def register(app: typer.Typer) -> None:
    """Make each absent command answer by its name instead of as a typing error."""
    for name in ABSENT:
        app.command(name, hidden=True, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})(
            _refuse(name)
        )


def _refuse(name: str) -> Callable[[typer.Context], None]:
    def refuse(_: typer.Context) -> None:
        raise BadInputError(f"planner {name} is not built yet in version {__version__}: {ABSENT[name]}")

    refuse.__doc__ = f"Not built yet: {ABSENT[name]}."
    return refuse
