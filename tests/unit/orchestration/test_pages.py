"""Which files Airflow's API server gives as pages: those of runs below its data folder, and no other."""

from pathlib import Path

import pytest

from planner.orchestration.pages import page_file

RUN = "20261121T101500.000Z"


def test_pages_are_those_of_runs_below_the_data_folder_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "data" / "runs" / RUN / "shop" / "report.html"
    page.parent.mkdir(parents=True)
    page.write_text("page", encoding="utf-8")
    outside = tmp_path / "data" / "runs" / "report.html"
    outside.write_text("secret", encoding="utf-8")
    monkeypatch.delenv("CONSUMER_PLANNER_DATA", raising=False)
    assert page_file(RUN, "shop") is None
    monkeypatch.setenv("CONSUMER_PLANNER_DATA", str(tmp_path / "data"))
    assert page_file(RUN, "shop") == page
    wrong = [(RUN, ".."), (RUN, "bank"), ("..", "shop"), (RUN, "shop/../shop"), ("x", "shop"), (RUN, ""), (RUN, "a\0b")]
    assert [pair for pair in wrong if page_file(*pair) is not None] == []
