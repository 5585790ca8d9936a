"""Commands of the design that this version does not have: each says so by name."""

from collections.abc import Callable

import typer

from planner import __version__
from planner.errors import BadInputError

ABSENT = {
    "apply": "no executor yet; the steps of planner explain are to be done by hand",
    "status": "no executor yet, so no plan is ever under way",
    "abort": "no executor yet, so no plan is ever under way",
    "verify": "no executor yet, so there is nothing to hold a forecast against",
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
