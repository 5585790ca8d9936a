"""The doctor's page: what is on it, in a parser and in a real headless Chromium."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from planner.diagnosis.diagnose import examine
from planner.diagnosis.finding import DoctorReport, Unread
from planner.diagnosis.group_evidence import GroupEvidence
from planner.errors import BadInputError
from planner.report.doctor import MOST_DETAILED, render_doctor, write_doctor_page
from tests.clusters.errors import CannotRunHereError
from tests.report.test_browser import ARGUMENTS, CONTRASTS
from tests.report.test_page import Reader
from tests.unit.diagnosis.patients import each, healthy, kafka, member
from tests.unit.diagnosis.test_membership import twins
from tests.unit.diagnosis.test_ownership import mixed

HOSTILE = "<script>alert('g')</script>"


def named(picture: GroupEvidence, group: str) -> GroupEvidence:
    return each(picture, lambda sample: replace(sample, group=group))


def pictures() -> list[GroupEvidence]:
    crowd = healthy(topics={"topic-x": 1, "topic-y": 1}, clients=("c1", "c2", "c3", "c4"))
    backlog = healthy(offsets=lambda _queue, number: (100_000 + 50 * number, 10_000 + 100 * number))
    silent = each(healthy(), member("c2", tuning=None, owned=None, subscriptions=None))
    gone = each(healthy(), lambda sample: replace(sample, members=()))
    everybody = {
        "torn": mixed(),
        "twins": twins(),
        "crowd": crowd,
        "backlog": backlog,
        "silent": silent,
        "gone": gone,
        "well": healthy(),
        "glance": healthy(looks=1),
        "kafka": kafka(12, 24),
        HOSTILE: mixed(),
    }
    return [named(picture, group) for group, picture in everybody.items()]


def report(taken: list[GroupEvidence], *, unread: tuple[Unread, ...] = ()) -> DoctorReport:
    found = [examine(picture) for picture in taken]
    order = sorted(found, key=lambda one: (one.worst.rank if one.worst else 3, one.group))
    return DoctorReport(taken[0].newest.at, tuple(order), unread, 2)


@pytest.fixture(scope="module")
def page() -> str:
    return render_doctor(report(pictures(), unread=(Unread("lost", "nobody answers"),)), pictures())


def test_the_page_is_well_formed_and_carries_no_script_and_no_address(page: str) -> None:
    reader = Reader(page)
    assert reader.open == []
    assert {tag for tag, _ in reader.tags}.isdisjoint({"script", "img", "iframe", "object", "base", "form"})
    for _, attributes in reader.tags:
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "#").startswith(("#", "data:,"))  # type: ignore[union-attr]


def test_every_link_leads_somewhere(page: str) -> None:
    reader = Reader(page)
    ids = {attributes["id"] for _, attributes in reader.tags if "id" in attributes}
    links = {str(attributes["href"])[1:] for tag, attributes in reader.tags if tag == "a"}
    assert links
    assert links <= ids


def test_names_are_shown_as_they_are_and_never_taken_for_markup(page: str) -> None:
    assert "<script>" not in page
    assert HOSTILE in "".join(Reader(page).text)


def test_evidence_cost_and_next_step_of_each_finding_are_on_the_page(page: str) -> None:
    text = "".join(Reader(page).text)
    for picture in pictures():
        for finding in examine(picture).findings:
            for part in (finding.title, *finding.evidence, finding.consequence[1:], finding.advice[1:]):
                assert part in text


def test_what_was_not_read_and_not_checked_is_said(page: str) -> None:
    text = "".join(Reader(page).text)
    assert "Not read: lost: nobody answers" in text
    assert "session.timeout.ms" in text
    assert "2 more groups have settings" in text


def test_torn_queues_are_marked_in_the_picture() -> None:
    torn = [picture for picture in pictures() if picture.group == "torn"]
    cells = [
        str(a["class"]) for tag, a in Reader(render_doctor(report(torn), torn)).tags if tag == "td" and "title" in a
    ]
    assert sum("t-doubled" in cell for cell in cells) == 2
    assert sum("t-orphan" in cell for cell in cells) == 2


def test_one_healthy_group_is_told_in_one_sentence() -> None:
    html = render_doctor(report([healthy()]), [healthy()])
    assert "shop is healthy" in "".join(Reader(html).text)


def test_equal_rounds_give_equal_pages(page: str) -> None:
    assert page == render_doctor(report(pictures(), unread=(Unread("lost", "nobody answers"),)), pictures())


def test_a_thousand_groups_stay_light_and_are_all_counted() -> None:
    sick, well = mixed(), healthy()
    pictures = [named(sick if number % 2 else well, f"group-{number:04}") for number in range(1000)]
    told = {0: examine(well), 1: examine(sick)}
    groups = [replace(told[number % 2], group=picture.group) for number, picture in enumerate(pictures)]
    worst_first = tuple(sorted(groups, key=lambda one: (not one.findings, one.group)))
    html = render_doctor(DoctorReport(sick.newest.at, worst_first), pictures)
    assert len(html) < 600_000
    assert "500 of 1000 groups have errors" in html
    assert html.count('class="finding') == MOST_DETAILED


def test_a_folder_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="folder"):
        write_doctor_page(tmp_path, report([healthy()]), [healthy()])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        raise CannotRunHereError("Chromium", "no chromium on PATH; apt-get install chromium brings it")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def file(page: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("doctor") / "doctor.html"
    path.write_text(page, encoding="utf-8")
    return path


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(browser: Browser, file: Path, scheme: str) -> None:
    shown = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
    shown.goto(file.as_uri())
    found = shown.evaluate(CONTRASTS)
    shown.close()
    assert found["texts"] > 40
    assert found["weak"] == []


@pytest.mark.browser
@pytest.mark.parametrize("width", [340, 390, 800, 1280])
def test_nothing_sticks_out_at_any_width(browser: Browser, file: Path, width: int) -> None:
    shown = browser.new_page(viewport={"width": width, "height": 900})
    shown.goto(file.as_uri())
    reaches = shown.evaluate("document.documentElement.scrollWidth")
    shown.close()
    assert reaches <= width
