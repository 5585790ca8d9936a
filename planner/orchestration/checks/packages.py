"""Airflow and the packages of the extras: are they installed, in versions that fit?"""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING, Final

from planner.errors import BadInputError
from planner.orchestration.checks.result import CheckSettings

if TYPE_CHECKING:
    from packaging.requirements import Requirement

DISTRIBUTION: Final = "consumer-planner"
AIRFLOW: Final = "apache-airflow"
EXTRAS: Final = ("airflow", "spark")
INSTALL: Final = "pip install 'WHEEL[airflow,spark,kafka,kubernetes,report]' (docs/install-airflow.md makes the wheel)"
"""No package index has the planner."""


def check_airflow(_: CheckSettings) -> Iterator[tuple[bool, str]]:
    """Say which Airflow is installed here, and whether it is one that the planner works with."""
    (expected,) = (requirement for requirement in _required() if requirement.name == AIRFLOW)
    installed = _installed(AIRFLOW)
    if installed is None:
        yield False, f"Airflow is not installed here, expected {expected.specifier}: run {INSTALL}"
    elif not expected.specifier.contains(installed):
        yield (
            False,
            f"found Airflow {installed}, expected {expected.specifier}: install one of these, or another planner",
        )
    else:
        yield True, f"Airflow {installed} is installed"


def check_packages(_: CheckSettings) -> Iterator[tuple[bool, str]]:
    """Compare what the extras ask for with what is installed; one sentence for each package that does not fit."""
    problems = [*_misfits(), *_unequal_pyspark()]
    for problem in problems:
        yield False, problem
    if not problems:
        shown = ", ".join(f"{requirement.name} {_installed(requirement.name)}" for requirement in _required())
        yield True, f"the packages of the extras {' and '.join(EXTRAS)} fit: {shown}"


def _misfits() -> Iterator[str]:
    for requirement in _required():
        installed = _installed(requirement.name)
        if installed is None or not requirement.specifier.contains(installed):
            expected = f"expected {requirement.specifier}"
            actual = f"found {installed or 'none'}, {expected}"
            yield f"package {requirement.name}: {actual}: run {INSTALL} in this environment"


def _unequal_pyspark() -> Iterator[str]:
    """Yield a sentence where the two differ: they install into one folder, and the later one has overwritten files."""
    spark, client = _installed("pyspark"), _installed("pyspark-client")
    if spark and client and spark != client:
        yield (
            f"found pyspark {spark} and pyspark-client {client}, which share one folder, expected one version: remove "
            f"both, then run {INSTALL}"
        )


def _required() -> tuple["Requirement", ...]:
    """Return what the extras ask for, sorted by name. Raises ``BadInputError`` where that cannot be known."""
    try:
        from packaging.requirements import Requirement  # noqa: PLC0415  it comes with Airflow

        lines = requires(DISTRIBUTION) or []
    except ImportError as error:
        missing = DISTRIBUTION if isinstance(error, PackageNotFoundError) else "packaging"
        raise BadInputError(
            f"which versions fit is unknown, as package {missing} is not installed here: run {INSTALL}"
        ) from error
    requirements = {
        requirement.name: requirement
        for requirement in map(Requirement, lines)
        for extra in EXTRAS
        if requirement.marker is not None and requirement.marker.evaluate({"extra": extra})
    }
    return tuple(requirements[name] for name in sorted(requirements))


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
