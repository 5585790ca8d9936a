import builtins
import importlib
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from planner.errors import BadInputError, MissingExtraError, StorageError
from planner.report import write_report
from planner.report.charts import NARROW, WIDE, trend_svg
from planner.report.trend import trend
from planner.report.write import render
from planner.text.printable import printable
from tests.builders import World
from tests.report import worlds

WORLDS = [
    worlds.growing,
    worlds.holding,
    worlds.shrinking,
    worlds.outdated,
    worlds.nobody_there,
    worlds.unknown_capacity,
    worlds.hostile,
]


class Reader(HTMLParser):
    """Collects tags, attributes and text, and checks that tags are closed in order."""

    EMPTY = frozenset({"meta", "link", "img", "br"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.mark.parametrize("world", WORLDS, ids=lambda make: make.__name__)
def test_the_page_is_well_formed_and_carries_no_script_and_no_address(world: Callable[[], World]) -> None:
    page = Reader(render(worlds.case(world())))
    assert page.open == []
    names = {tag for tag, _ in page.tags}
    assert names.isdisjoint({"script", "img", "iframe", "object", "base", "form"})
    for _, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "#").startswith(("#", "data:,"))  # type: ignore[union-attr]
        assert "src" not in attributes


def test_names_are_shown_as_they_are_and_never_taken_for_markup() -> None:
    case = worlds.case(worlds.hostile())
    html = render(case)
    assert "<script>" not in html
    assert html.count("</style>") == 1
    text = "".join(Reader(html).text)
    for name in (case.snapshot.group, case.snapshot.cluster, case.snapshot.problems[0], *case.snapshot.clients):
        assert printable(name[1:]) in text
    assert printable(html) == html, "nothing steers a terminal that shows the file, or turns its reading direction"
    assert r"\x00\x1b[2J\x9b1A\u202e\u2066\u2028" in text


def test_names_never_enter_the_charts() -> None:
    svg = trend_svg(trend(worlds.case(worlds.hostile())), WIDE)
    assert "alert" not in svg


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_colour_of_the_charts_is_one_of_the_page(width: int) -> None:
    svg = str(trend_svg(trend(worlds.case(worlds.growing())), width))
    colours = set(re.findall(r'(?:fill|stroke)="([^"]*)"', svg))
    assert colours - {"none", "transparent", "url(#gap)"} == {
        f"var(--{name})"
        for name in ("ink", "soft", "rule", "arrival", "consumption", "lag", "chosen", "staying", "ahead")
    }


def test_text_in_the_charts_stays_text() -> None:
    svg = str(trend_svg(trend(worlds.case(worlds.growing())), WIDE))
    for title in ("Messages per second", "Messages waiting", "Consumers", "forecast"):
        assert f">{title}</text>" in svg


def test_the_charts_are_drawn_in_utc_wherever_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    here = render(worlds.case(worlds.growing()))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert render(worlds.case(worlds.growing())) == here
    assert ">10:25</text>" in here


def test_equal_cases_give_equal_pages() -> None:
    assert render(worlds.case(worlds.growing())) == render(worlds.case(worlds.growing()))


def test_a_thousand_queues_and_sixteen_counts_stay_below_a_megabyte(tmp_path: Path) -> None:
    world = worlds.large()
    assert (len(world.snapshot.queues), len(world.snapshot.clients)) == (1000, 100)
    assert len({outcome.count for outcome in world.outcomes}) == 16
    page = write_report(
        tmp_path / "r.html", world.snapshot, world.outcomes, world.record, world.plan, max_utilisation=0.8
    )
    assert page.stat().st_size < 1_000_000
    told = page.read_text(encoding="utf-8")
    assert "Of 1,000 queues planner simulate SNAPSHOT --strategies all compares them" in told, "a table takes minutes"


def test_without_the_extra_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr("planner.report.extra.import_module", missing)
    world = worlds.growing()
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[report\]'"):
        write_report(tmp_path / "r.html", world.snapshot, world.outcomes, world.record, world.plan)
    assert list(tmp_path.iterdir()) == []


def test_the_package_loads_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def guarded(name: str, *rest: object) -> object:
        assert name.partition(".")[0] not in {"jinja2", "markupsafe", "vl_convert"}
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", guarded)
    importlib.reload(importlib.import_module("planner.report.write"))


def test_a_folder_is_refused(tmp_path: Path) -> None:
    world = worlds.growing()
    with pytest.raises(BadInputError, match="is a folder"):
        write_report(tmp_path, world.snapshot, world.outcomes, world.record, world.plan)


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    world = worlds.growing()
    (tmp_path / "file").write_text("here first")
    with pytest.raises(StorageError):
        write_report(tmp_path / "file" / "r.html", world.snapshot, world.outcomes, world.record, world.plan)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
