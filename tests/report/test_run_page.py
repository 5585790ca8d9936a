"""The page of a run: what it says of what was seen, and where it draws it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from planner.errors import BadInputError
from planner.report.consumers import Marks
from planner.report.ownership import ownership
from planner.report.run import render, write_run
from planner.report.run_charts import WIDE, run_spec
from planner.report.run_views import done_step, facts, headline, plan_section
from planner.verification.verdict import Fit
from tests.pod_groups import QUEUES
from tests.report.runs import DOWN, FEW, MANY, UP, at, run


def test_the_headline_has_every_count_that_the_run_went_through() -> None:
    assert headline(run()) == "2 → 4 → 2 consumers"


def test_the_figures_on_top_are_those_of_the_verdicts_and_of_the_looks() -> None:
    by_name = {name: (figure, note) for name, figure, note in facts(run())}
    assert by_name["Plans carried out"] == ("2", "of 2")
    assert by_name["Queues moved"] == ("5 + 9", "forecast: 4–6 + 4–6")
    assert by_name["Forecasts met"] == ("1", "1 missed, 14 that nobody could see")
    assert by_name["Most messages waiting"][1] == "at 10:01:00; 40 at the end"


def test_a_plan_is_told_with_its_steps_checks_and_approver() -> None:
    view = plan_section(2, run().plans[1])
    assert view.title == "Plan 2: from 4 to 2"
    assert [step.took for step in view.steps] == ["5 s", "5 s", "5 s"]
    assert view.approved == "sha256:approved, 2026-11-22 10:02:27 UTC by maria"
    assert (view.checks[0].name, view.checks[0].forecast, view.checks[0].seen) == ("Moved queues", "4–6", "9")
    assert [check.fit for check in view.checks] == [Fit.OUTSIDE] + [Fit.UNKNOWN] * 7


def test_steps_that_never_began_or_never_ended_say_so() -> None:
    stored = run().plans[0]
    begun, never = stored.status.steps[0], replace(stored, status=replace(stored.status, steps=()))
    assert done_step(0, never).took == "never begun"
    halted = replace(stored, status=replace(stored.status, steps=(replace(begun, finished_at=None),)))
    assert done_step(0, halted).took == "not finished"


def test_a_queue_has_one_bar_for_each_stretch_of_the_same_owner() -> None:
    looks = [(at(second), {QUEUES[0]: names}) for second, names in enumerate([("a",), ("a",), (), ("b",), ("b",)])]
    (line,) = ownership(looks, Marks(["a", "b"], ())).lines
    assert [([mark.client for mark in bar.marks], bar.left, bar.width) for bar in line.bars] == [
        (["a"], 0.0, 50.0),
        ([], 50.0, 25.0),
        (["b"], 75.0, 25.0),
    ]


def test_steps_are_bands_from_their_begin_to_their_end_behind_each_chart() -> None:
    text = json.dumps(run_spec(run(), WIDE))
    for begin in (UP, UP + 5, UP + 10, DOWN, DOWN + 5, DOWN + 10):
        band = {"at": round(at(begin).timestamp() * 1000), "until": round(at(begin + 5).timestamp() * 1000)}
        assert text.count(json.dumps(band)) == 3


def test_the_page_stands_alone_and_names_what_is_real() -> None:
    page = render(run())
    assert not re.search(r"<script|https?://(?!www\.w3\.org)", page)
    assert page == render(run())
    for expected in (*FEW, *MANY, "load rises", "a broker", "no containers", "as it was approved"):
        assert expected in page


def test_a_run_that_was_never_looked_at_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="looked at 1 times"):
        render(replace(run(), sights=run().sights[:1]))
    with pytest.raises(BadInputError, match="is a folder"):
        write_run(tmp_path, run())
