"""Take README's pictures of the pages that ``make run`` and ``make demo`` left: ``make picture``."""

import sys
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.clusters.artifacts import find_program

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
WIDTH = 1280
REPORT_HEIGHT, DEMO_HEIGHT = 1860, 1500
"""Down to the owners of the queues; what follows is on the pages themselves."""


def pages() -> Iterator[tuple[Path, Path, int]]:
    """Yield each page that is there: the page, its picture, the picture's height."""
    reports = sorted((ROOT / "work/data/runs").glob("*/*/report.html"))
    if reports:
        yield reports[-1], IMAGES / "report.png", REPORT_HEIGHT
    demo = ROOT / "work/demo/index.html"
    if demo.exists():
        yield demo, IMAGES / "demo.png", DEMO_HEIGHT


def main() -> None:
    """Take the pictures of what is there; leave with one sentence when there is nothing."""
    found = list(pages())
    if not found:
        sys.exit("picture: there is no page yet: make run or make demo first")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_program("chromium"), args=QUIET)
        for source, picture, height in found:
            page = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme="light")
            page.goto(source.as_uri())
            page.screenshot(path=picture)
            print(picture.relative_to(ROOT))
        browser.close()


if __name__ == "__main__":
    main()
