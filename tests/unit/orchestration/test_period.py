"""The period of the scheduled DAG: what the setting says, and nothing that cron would not do evenly."""

from datetime import timedelta

import pytest

from planner.errors import BadInputError
from planner.orchestration.period import SETTING, cron_of, run_period


def test_ten_minutes_unless_the_setting_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    assert (run_period(), cron_of(run_period())) == (timedelta(minutes=10), "*/10 * * * *")
    for text, line in (("1", "*/1 * * * *"), ("60", "0 * * * *")):
        monkeypatch.setenv(SETTING, text)
        assert cron_of(run_period()) == line


@pytest.mark.parametrize("text", ["", "0", "7", "61", "1.5", "ten", "-5", "010"])
def test_what_cron_would_not_do_evenly_is_refused_with_what_is_allowed(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, text)
    with pytest.raises(BadInputError, match=f"{SETTING}: found '{text}', expected minutes that divide an hour: 1, 2"):
        run_period()
