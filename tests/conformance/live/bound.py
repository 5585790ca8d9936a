"""How many intervals of a given coverage must hold."""

from math import comb

COVERAGE = 0.9
"""What the forecasts' intervals claim."""
LEVEL = 1e-4
"""How often fewer than ``least_covered`` hold although the claim is true."""


def least_covered(figures: int, coverage: float = COVERAGE, level: float = LEVEL) -> int:
    """Return the least number of so many independent figures that is not too few: fewer has odds of ``level`` at most.

    Of 20 figures with a coverage of 0.9, 11 or fewer are covered with odds of 6e-5, 12 or fewer with odds of 4e-4: it
    is 12.
    """
    odds = 0.0
    for held in range(figures):
        odds += comb(figures, held) * coverage**held * (1 - coverage) ** (figures - held)
        if odds > level:
            return held
    return figures
