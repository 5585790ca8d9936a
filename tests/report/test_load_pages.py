"""Pages on loads: what planner demand, planner backtest and planner advise --prometheus draw."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from planner.backtest.play import Run
from planner.backtest.recorded import AsItWas, NotPlayable, RecordedGroup
from planner.backtest.review import Review, most_saved_first
from planner.backtest.simulated_group import Totals
from planner.demand.outlook import outlook_of
from planner.demand.recent import MinuteLoad
from planner.model.points import GroupPoint
from planner.report import backtest
from planner.report.backtest import backtest_chart, render_backtest, setting_points
from planner.report.charts import WIDE, backtest_spec, settings_spec
from planner.report.demand import AHEAD_SHARE, MOST_POINTS, demand_chart, render_demand
from planner.report.past_advice import render_past_advice
from tests.backtest_builders import scenario

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


def points(minutes: int) -> list[GroupPoint]:
    """Return a load of 100 messages a second that is unknown for one hour, three hours ago."""
    return [
        GroupPoint(
            NOW - timedelta(minutes=age), 60.0, None if 180 <= age < 240 else 100.0, None, None, None, None, False
        )
        for age in range(minutes - 1, -1, -1)
    ]


def run(policy: str, hours: float, late_minutes: int = 0, changes: int = 1) -> Run:
    totals = Totals()
    totals.seconds, totals.late_minutes, totals.rebalances = 3600 * hours, late_minutes, changes
    ordered = tuple((60.0 * number, 1 + number % 2) for number in range(changes))
    return Run(policy, "one setting", totals, ordered, (totals,))


def test_what_is_ahead_takes_its_share_of_the_chart_and_a_gap_stays_one() -> None:
    """Red when days of past squeeze two hours to a line, or when nothing observed is drawn as a load."""
    spans = points(3 * 1440)
    outlook = outlook_of(MinuteLoad([100.0] * 180, [False] * 180), NOW)
    assert outlook is not None
    chart = demand_chart(NOW, spans, outlook)
    assert len(chart.past) <= MOST_POINTS
    ahead = (chart.ahead[-1].at - NOW) / (chart.ahead[-1].at - chart.past[0].at)
    assert ahead == pytest.approx(AHEAD_SHARE, abs=0.01)
    unknown = [point.at for point in chart.past if point.rate is None]
    assert NOW - timedelta(minutes=200) in unknown
    assert NOW - timedelta(minutes=100) not in unknown
    page = render_demand("<shop>", NOW, spans, outlook)
    assert "&lt;shop&gt;" in page
    assert "<svg" in page


def test_a_backtest_page_names_the_least_and_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backtest, "MOST_STEPS", 5)
    group = scenario(rates=[100.0] * 30 + [300.0] * 30)
    runs = [run("planner", 2.0), run("keda", 3.0, late_minutes=1, changes=9)]
    chart = backtest_chart(group, runs)
    assert (chart.hours, chart.loads[0], chart.loads[-1][1:]) == (
        1.0,
        (pytest.approx(1 / 60, abs=1e-4), 1.0, 1.0),
        (3.0, 3.0),
    )
    assert chart.lines[0].steps == ((0.0, 2), (0.0, 1), (1.0, 1))
    page = render_backtest(group, runs)
    # 2 h and one rebalance against 3 h, nine rebalances and one late minute, by 0.25 h and 1 h: 2.25 and 6.25.
    assert "planner costs least; keda 2.78." in page
    assert "Only the first changes of keda are drawn." in page
    assert "In no hour did it cost more." in page
    dearer = render_backtest(group, [run("planner", 4.0, late_minutes=2), run("keda", 3.0)])
    assert "<td>3 h</td><td>4 against 3</td><td>1 against 1</td><td>2 against 0</td>" in dearer


def test_a_backtest_page_draws_who_waited_how_long_and_from_when_on_it_is_late() -> None:
    """Red when waits are not drawn, end before the play does, or the line of what is late stands elsewhere."""
    group = scenario(rates=[100.0] * 60, late_after_s=90)
    waits = replace(run("planner", 2.0), longest_waits=(0.0, 5.0, 4_000.0, 0.5))
    chart = backtest_chart(group, [waits, run("keda", 3.0)])
    assert chart.lines[0].waits == ((0.0, 0.0), (0.25, 5.0), (0.5, 4_000.0), (0.75, 0.5), (1.0, 0.5))
    late, without, drawn = backtest_spec(chart, WIDE)["vconcat"][-1]["layer"]
    assert late["data"]["values"] == [{"wait": 90}]
    assert without["data"]["values"] == []
    assert drawn["data"]["values"][2] == {"at": 0.5, "wait": 4_000.0}
    page = render_backtest(group, [waits, run("keda", 3.0)])
    assert "Longest wait" in page
    assert ">1 h</text>" in page
    assert "the wait of 1 min 30 s from which a minute is late" in page


def settings(*hours_and_late: tuple[float, int]) -> tuple[Totals, ...]:
    return tuple(Totals(seconds=3600 * hours, late_minutes=late) for hours, late in hours_and_late)


def test_a_backtest_page_draws_every_setting_and_the_line_of_those_that_none_is_better_than() -> None:
    """Red when a worse setting is on the line, a dear one is drawn, or the chosen one is not."""
    keda = replace(run("keda", 3.0, 1), settings=settings((3.0, 1), (2.5, 9), (3.5, 4), (4.0, 0), (5.1, 0), (2.5, 20)))
    dear = replace(run("keda-defaults", 9.0), settings=settings((9.0, 0)))
    runs = [run("planner", 2.0), keda, dear]
    planner, drawn, none = setting_points(runs, 5.0)
    assert (planner.all, planner.frontier, planner.chosen) == (((2.0, 0),), ((2.0, 0),), (2.0, 0))
    assert drawn.all == ((2.5, 9), (2.5, 20), (3.0, 1), (3.5, 4), (4.0, 0))
    assert (drawn.frontier, drawn.chosen) == (((2.5, 9), (3.0, 1), (4.0, 0)), (3.0, 1))
    assert (none.all, none.frontier, none.chosen) == ((), (), None)
    marks = [layer["mark"]["size"] for layer in settings_spec([drawn, none], WIDE)["vconcat"][0]["layer"][-1:]]
    assert marks == [90]
    page = render_backtest(scenario(rates=[100.0] * 60), runs)
    assert "What each setting costs" in page
    assert "far more hours than planner are left out. So is the setting in the table of keda-defaults." in page


def test_a_policy_beyond_the_colours_has_grey_points_and_its_name_beside_them() -> None:
    runs = [run(name, 2.0) for name in ("planner", "keda", "flink", "optimum", "fixed", "druid")]
    assert len({it.colour for it in setting_points(runs, 5.0)}) == 5
    assert '"var(--soft)"/></svg>fixed, druid</li>' in render_backtest(scenario(rates=[100.0] * 60), runs)


def test_the_page_of_an_installation_has_every_group_with_what_it_would_have_saved() -> None:
    group = scenario(system="kafka", strategy="range")
    past = AsItWas(hours=10.0, rebalances=2, late_minutes=3, fewest=2, most=4)
    small = RecordedGroup("small", group, past, "stated", 1.0)
    large = replace(small, group="large", past=replace(past, hours=100.0))
    reviews = most_saved_first([Review(it, run("planner", 5.0), run("keda", 6.0)) for it in (small, large)])
    other = NotPlayable("audit <b>", "nothing arrived in all that time")
    page = render_past_advice(reviews, [other], (NOW - timedelta(days=14), NOW, 300.0), price=2.0)
    assert page.index("<bdi>large</bdi>") < page.index("<bdi>small</bdi>")
    # 100 h, two rebalances and three late minutes against 5 h and one rebalance: 103.5 - 5.25 and 13.5 - 5.25 hours.
    assert "the planner saves 98 h, 196.50 in money" in page
    assert "the planner saves 8.2 h, 16.50 in money" in page
    assert "2 groups: 106 h to save, 213.00 in money" in page
    assert "audit &lt;b&gt;" in page
    assert "nothing arrived in all that time." in page


def test_groups_at_risk_are_named_with_what_no_count_helps() -> None:
    """Red when late minutes or a queue that is too much for one consumer are not told, or a quiet group is."""
    quiet = AsItWas(hours=10.0, rebalances=0, late_minutes=0, fewest=2, most=4)
    calm = RecordedGroup("calm", scenario(system="kafka", strategy="range"), quiet, "stated", 1.0)
    # Four partitions share 500 messages a second in one minute, and one consumer does 100.
    hot = scenario(system="kafka", strategy="range", rates=[100.0] * 29 + [500.0])
    late = RecordedGroup("late", hot, replace(quiet, late_minutes=1), "stated", 1.0)
    reviews = [Review(it, run("planner", 5.0), run("keda", 6.0)) for it in (calm, late)]
    assert [len(it.risks) for it in reviews] == [0, 2]
    page = render_past_advice(reviews, [], (NOW - timedelta(days=14), NOW, 300.0), price=None)
    risky = page[page.index('id="risky"') : page.index('id="each"')]
    assert "<bdi>calm</bdi>" not in risky
    assert "<bdi>late</bdi></strong>: late in 1 minute as it was, in none under the planner; " in risky
    assert "; partition t/0 alone got up to 125 messages/s, more than a consumer does" in risky
