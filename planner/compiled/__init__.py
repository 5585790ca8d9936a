"""Machine code for decisions that are taken by the thousand."""

import warnings
from importlib.util import find_spec

from planner.decision.horizon import Model


def fastest_model() -> type[Model]:
    """Return the horizon's compiled model where numba is installed (extra ``compiled``), else NumPy's: the same bills.

    Warns where numba is there and cannot be loaded, as beside a NumPy that it does not know.
    """
    if find_spec("numba") is None:
        return Model
    try:
        from planner.compiled.horizon import CompiledModel
    except ImportError as error:
        warnings.warn(f"numba cannot be loaded ({error}): NumPy decides, three times as slow", stacklevel=2)
        return Model
    return CompiledModel
