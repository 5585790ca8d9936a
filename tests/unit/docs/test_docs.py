"""The pages for people: links and anchors lead somewhere, every page is in the navigation, every hold is explained."""

import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.decision.decision import HoldCause
from scripts import site as site_script
from scripts.ends import RunFailedError
from scripts.site import LINK, build_site, without_outside_links

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "helm/README.md", *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
IMAGE = re.compile(r"!\[[^\]]*\]\((?P<target>[^)\s]+)\)")
FENCE = re.compile(r"(?ms)^```.*?^```")
HEADING = re.compile(r"(?m)^#{1,6} +(.+?) *#*$")
MOST_README_LINES = 120


def prose(page: Path) -> str:
    """Return the page without its code blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page as GitHub and the site make them."""
    names: list[str] = []
    for heading in HEADING.findall(prose(page)):
        text = LINK.sub(lambda match: match["text"], heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        count = sum(name == slug or re.fullmatch(rf"{re.escape(slug)}-\d+", name) is not None for name in names)
        names.append(f"{slug}-{count}" if count else slug)
    return set(names)


def local_links(page: Path) -> Iterator[tuple[Path, str]]:
    """Yield file and anchor of each link and image that leads into the repository."""
    text = prose(page)
    for pattern in (LINK, IMAGE):
        for match in pattern.finditer(text):
            if "://" not in match["target"] and not match["target"].startswith("mailto:"):
                path, _, anchor = match["target"].partition("#")
                yield ((page.parent / path).resolve() if path else page), anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_anchor_leads_somewhere(page: Path) -> None:
    for file, anchor in local_links(page):
        assert file.exists(), f"{page.relative_to(ROOT)} links to {file.relative_to(ROOT)}, which does not exist"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{page.relative_to(ROOT)}: {file.name} has no heading #{anchor}"


def navigation(entries: object) -> Iterator[str]:
    """Yield the pages of ``nav``, top to bottom."""
    if isinstance(entries, str):
        yield entries
    elif isinstance(entries, dict):
        for inner in entries.values():
            yield from navigation(inner)
    elif isinstance(entries, list):
        for inner in entries:
            yield from navigation(inner)


def test_the_navigation_has_every_page_once() -> None:
    nav = list(navigation(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]))
    on_disk = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    records = {page for page in on_disk if re.fullmatch(r"adr/\d+-.*", page)}  # listed by adr/index.md
    assert sorted(nav) == sorted(on_disk - records), "zensical.toml: add the page to nav, or take it out"
    linked = {file for file, _ in local_links(DOCS / "adr/index.md")}
    assert {DOCS / record for record in records} <= linked, "docs/adr/index.md: add the record"


def test_every_cause_of_a_hold_has_one_entry_with_its_meaning_and_the_next_step() -> None:
    entries = re.split(r"(?m)^## ", (DOCS / "why-it-holds.md").read_text())[1:]
    titles = [entry.partition("\n")[0] for entry in entries]
    assert sorted(titles) == sorted(HoldCause), "docs/why-it-holds.md: one entry for each HoldCause"
    for entry in entries:
        assert "**Means:** " in entry, entry
        assert "**Next:** " in entry, entry


def test_the_table_of_holds_has_every_cause_once() -> None:
    table = (DOCS / "decisions.md").read_text().partition("## Every reason to hold\n")[2].partition("\n## ")[0]
    rows = re.findall(r"(?m)^\| `([A-Z]\w+)` \|", table)
    assert sorted(rows) == sorted(HoldCause), "docs/decisions.md: one row for each HoldCause"


def test_the_readme_is_short_and_starts_with_advise() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < MOST_README_LINES
    commands = re.findall(r"(?m)^\$ (planner .*)", text)
    assert commands[0].startswith("planner advise ")


def test_a_link_out_of_docs_becomes_text_or_leads_to_the_source() -> None:
    page = DOCS / "install.md"
    assert "[helm/README.md](../helm/README.md)" in page.read_text()
    assert "](../helm" not in without_outside_links(page)
    assert "(connect-kafka.md)" in without_outside_links(DOCS / "try-kafka.md")
    shown = without_outside_links(page, "https://example.org/tree/main/")
    assert "[helm/README.md](https://example.org/tree/main/helm/README.md)" in shown


def test_the_site_builds_strictly_with_search(tmp_path: Path) -> None:
    site = build_site(tmp_path)
    pages = {str(page.relative_to(site)) for page in site.rglob("index.html")}
    assert {"index.html", "try-kafka/index.html", "why-it-holds/index.html", "releases/0.1.0/index.html"} <= pages
    assert "RecentlyChanged" in (site / "search.json").read_text()
    assert 'id="recentlychanged"' in (site / "why-it-holds/index.html").read_text()


def test_a_dead_link_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(DOCS, docs)
    (docs / "index.md").write_text("# Home\n\n[nowhere](nowhere.md)\n")
    monkeypatch.setattr(site_script, "DOCS", docs)
    with pytest.raises(RunFailedError, match=r"nowhere\.md"):
        build_site(tmp_path / "work")
