"""The examples that the migration form shows."""

import pytest

from planner.documents.migration import KINDS, parse_request
from planner.orchestration.examples import EXAMPLES, examples_in_markdown


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_an_example_that_the_planner_accepts(kind: str) -> None:
    words, request = EXAMPLES[kind]
    assert parse_request(request, kind).kind == kind
    assert f"{words}:\n\n> {{" in examples_in_markdown()
