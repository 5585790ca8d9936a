"""``--capacity`` of ``planner advise``: of single groups, and of all whose past shows none."""

import pytest

from planner.cli.past_advice import capacities
from planner.errors import BadInputError


def test_a_figure_alone_is_of_all_groups_that_show_none() -> None:
    assert capacities(["shop=100", "a=b=7.5", "20"]) == {"shop": 100.0, "a=b": 7.5, None: 20.0}
    assert capacities(None) == {}


@pytest.mark.parametrize("text", ["", "=20", "shop=", "shop=0", "shop=-1", "shop=inf", "nan", "shop", "0"])
def test_anything_else_is_named(text: str) -> None:
    with pytest.raises(BadInputError, match=r"option --capacity: found .* expected GROUP=MESSAGES_PER_SECOND, or"):
        capacities([text])
