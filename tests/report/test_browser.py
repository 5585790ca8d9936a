"""The page in a real headless Chromium: what is there, what is asked of the network, how it reads."""

import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from planner.report.run import write_run
from planner.report.write import write_page
from tests.builders import World
from tests.clusters.errors import CannotRunHereError
from tests.report import runs, worlds

pytestmark = pytest.mark.browser

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

PATIENCE_MS = 300_000

SECTIONS = (
    "How it came here, and where it goes",
    "Who owns which queue",
    "Why this count, and why not the others",
    "What to do",
    "What this stands on",
)

WORLDS: dict[str, Callable[[], World]] = {
    "scale": worlds.growing,
    "shrink": worlds.shrinking,
    "hold": worlds.holding,
    "outdated": worlds.outdated,
    "nobody": worlds.nobody_there,
    "hostile": worlds.hostile,
    "large": worlds.large,
}

CONTRASTS = Path(__file__).with_name("contrasts.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        raise CannotRunHereError("Chromium", "no chromium on PATH; apt-get install chromium brings it")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=ARGUMENTS, timeout=PATIENCE_MS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {name: write_page(folder / f"{name}.html", worlds.case(make())) for name, make in WORLDS.items()}
    return {**made, "run": write_run(folder / "run.html", runs.run())}


class Visit:
    """One page opened in the browser, with everything it asked for and complained of."""

    def __init__(self, page: Page, file: Path) -> None:
        self.page, self.requests, self.complaints = page, list[str](), list[str]()
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        page.goto(file.as_uri())


@pytest.fixture
def visit(browser: Browser, files: dict[str, Path]) -> Iterator[Callable[..., Visit]]:
    opened: list[Page] = []

    def open_page(name: str, scheme: str = "light", width: int = 1400) -> Visit:
        viewport = ViewportSize(width=width, height=900)
        page = browser.new_page(viewport=viewport, color_scheme="dark" if scheme == "dark" else "light")
        page.set_default_timeout(PATIENCE_MS)
        opened.append(page)
        return Visit(page, files[name])

    yield open_page
    for page in opened:
        page.close()


@pytest.mark.parametrize("name", WORLDS)
def test_every_section_is_there_nothing_is_fetched_nothing_complains(
    visit: Callable[..., Visit], files: dict[str, Path], name: str
) -> None:
    seen = visit(name)
    seen.page.wait_for_load_state("networkidle")
    text = seen.page.inner_text("body")
    assert seen.requests == [files[name].as_uri()]
    assert seen.complaints == []
    assert [section for section in SECTIONS if section not in text] == []


def test_the_decision_its_steps_and_documents_are_read(visit: Callable[..., Visit]) -> None:
    world = worlds.growing()
    text = visit("scale").page.inner_text("body")
    for expected in (
        "Scale from 3 to 6 consumers",
        "11–19",
        "Start 3 pods",
        "Wait until the group has settled",
        "set the replicas of billing-consumer back to 3",
        world.record.snapshot.digest,
        "2026-11-21 10:45:00 UTC",
        *(f"{number:%H:%M}" for number in [world.snapshot.at]),
    ):
        assert expected in text


def test_a_hold_is_calm(visit: Callable[..., Visit]) -> None:
    page = visit("hold").page
    assert page.inner_text("h1").startswith("Hold at 3 consumers")
    assert "Nothing. The group stays as it is" in page.inner_text("body")
    assert page.locator("[role=alert], .error, .warning").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["scale", "hold", "large", "nobody", "run"])
def test_every_text_stands_out_from_what_is_behind_it(visit: Callable[..., Visit], name: str, scheme: str) -> None:
    found = visit(name, scheme).page.evaluate(CONTRASTS)
    assert found["texts"] > 40
    assert found["weak"] == []


def test_light_and_dark_differ(visit: Callable[..., Visit]) -> None:
    colours = [
        visit("scale", scheme).page.evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    ]
    assert colours[0] != colours[1]


@pytest.mark.parametrize("width", [320, 400, 700, 1000, 1400])
@pytest.mark.parametrize("name", ["scale", "large", "hostile", "run"])
def test_nothing_runs_over_the_side(visit: Callable[..., Visit], name: str, width: int) -> None:
    page = visit(name, width=width).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_exactly_one_version_of_the_charts_is_shown(visit: Callable[..., Visit]) -> None:
    for width, shown in ((400, ".narrow"), (1400, ".wide")):
        page = visit("scale", width=width).page
        assert [page.is_visible(".chart.narrow"), page.is_visible(".chart.wide")] == [
            shown == ".narrow",
            shown == ".wide",
        ]


def test_the_queues_are_tables_with_headers_that_name_the_owner(visit: Callable[..., Visit]) -> None:
    page = visit("scale").page
    before, after = page.locator("table.grid").all()
    assert before.locator("td.cell").count() == after.locator("td.cell").count() == 22
    assert before.locator("td.leaves").count() == after.locator("td.arrives").count() == 18
    assert after.locator("td.arrives").first.text_content() == "B from A"
    assert page.locator("table").count() == page.locator("table:has(th[scope])").count()


def test_pictures_have_words_and_headings_have_an_order(visit: Callable[..., Visit]) -> None:
    page = visit("scale").page
    assert page.locator("[role=img]:not([aria-label])").count() == 0
    assert page.locator("svg").count() == page.locator("svg[aria-hidden], [role=img] svg").count()
    levels = [int(name[1]) for name in page.eval_on_selector_all("h1,h2,h3", "all => all.map(e => e.tagName)")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_dots_stand_where_the_data_puts_them(visit: Callable[..., Visit]) -> None:
    page = visit("scale").page
    chosen = page.locator("li.count.chosen")
    strip, bound = chosen.locator(".strip").bounding_box(), chosen.locator("i.bound").bounding_box()
    busiest = max(box["x"] + box["width"] / 2 for dot in chosen.locator("b.disc").all() if (box := dot.bounding_box()))
    outcome = worlds.case(worlds.growing()).chosen
    assert strip is not None
    assert bound is not None
    assert outcome is not None
    assert outcome.utilisation is not None
    per_unit = (bound["x"] + bound["width"] / 2 - strip["x"]) / worlds.BOUND
    assert busiest == pytest.approx(strip["x"] + outcome.utilisation * per_unit, abs=1.5)


@pytest.mark.parametrize("width", [390, 1400])
def test_the_lanes_are_drawn_where_the_change_is_forecast_and_nothing_in_them_overlaps(
    visit: Callable[..., Visit], width: int
) -> None:
    page = visit("scale", width=width).page
    (svg,) = page.locator(".swim > svg").all()
    room = svg.bounding_box()
    assert room is not None
    assert 0 < svg.locator(".bar.waits, .bar.both").count() <= svg.locator(".link").count()
    labels = sorted(box["x"] for text in svg.locator("text").all() if (box := text.bounding_box()))
    assert all(after - before > 24 for before, after in pairwise(labels))
    for bar in svg.locator(".bar").all():
        box = bar.bounding_box()
        assert box is not None
        assert room["x"] - 1 <= box["x"] <= box["x"] + box["width"] <= room["x"] + room["width"] + 1
    names = [box for name in page.locator(".swim .names .disc").all() if (box := name.bounding_box())]
    assert all(after["y"] >= before["y"] + before["height"] for before, after in pairwise(names))
    assert visit("hold").page.locator(".swim").count() == 0


def test_it_prints_with_everything_unfolded(visit: Callable[..., Visit], tmp_path: Path) -> None:
    page = visit("large").page
    page.emulate_media(media="print")
    assert page.locator("details table").first.is_visible()
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert (tmp_path / "report.pdf").stat().st_size > 10_000
