"""Take the README's picture of the report that ``make run`` left: ``make picture``."""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.clusters.artifacts import find_program

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/images/report.png"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
WIDTH = 1280
HEIGHT = 1860
"""Down to the owners of the queues; counts and steps follow on the page itself."""


def main() -> None:
    """Take the newest report's picture; leave with one sentence when there is none."""
    reports = sorted((ROOT / "work/data/runs").glob("*/*/report.html"))
    if not reports:
        sys.exit("picture: there is no report yet: make run first")
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_program("chromium"), args=QUIET)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(reports[-1].as_uri())
        page.screenshot(path=PICTURE)
        browser.close()
    print(PICTURE.relative_to(ROOT))


if __name__ == "__main__":
    main()
