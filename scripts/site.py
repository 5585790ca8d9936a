"""``make docs``: the site of ``docs/``, built strictly into ``work/site``.

Pages link to code, examples and the changelog as they do in the repository. The site has none of these, so such a link
becomes its text there, or leads to where the repository is shown, with ``--source URL``.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

from planner.errors import BadInputError
from planner.storage.files import write_atomically
from scripts.ends import RunFailedError, exit_code_of

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "zensical.toml"
DOCS = ROOT / "docs"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")
_SITE_LINE = 'site_dir = "work/site"\n'


def main() -> int:
    """Build the site with the arguments of the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="scripts.site", description="Build the site of docs/.")
    parser.add_argument("--work", type=Path, default=ROOT / "work", help="folder that everything is written to")
    parser.add_argument("--source", help="URL below which the files of the repository are shown")
    given = parser.parse_args()

    def build() -> None:
        sys.stdout.write(f"The site: {build_site(given.work.resolve(), given.source) / 'index.html'}\n")

    return exit_code_of(build, "docs: ")


def build_site(work: Path, source: str | None = None) -> Path:
    """Return the folder of the site. Raises ``RunFailedError`` with the generator's words for a dead link."""
    staged, site = work / "site-source", work / "site"
    for folder in (staged, site):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, staged / "docs", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for page in sorted((staged / "docs").rglob("*.md")):
        original = DOCS / page.relative_to(staged / "docs")
        page.write_text(without_outside_links(original, source), encoding="utf-8")
    write_atomically(staged / CONFIG.name, _config())
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", str(staged / CONFIG.name)]
    run = subprocess.run(command, cwd=staged, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        # The generator colours each letter, and ends with a stack of its own.
        words = COLOUR.sub("", run.stdout + run.stderr).partition("Traceback")[0]
        raise RunFailedError(f"the site does not build:\n{words.strip()}", 1)
    return (staged / "site").rename(site)


def without_outside_links(page: Path, source: str | None = None) -> str:
    """Return the page's text; a link that leaves ``docs/`` becomes its text, or one below ``source``."""

    def replaced(match: re.Match[str]) -> str:
        target = match["target"]
        if "://" in target or target.startswith("#"):
            return match[0]
        file = (page.parent / target.partition("#")[0]).resolve()
        if file.is_relative_to(DOCS):
            return match[0]
        return f"[{match['text']}]({source.rstrip('/')}/{file.relative_to(ROOT)})" if source else match["text"]

    return LINK.sub(replaced, page.read_text(encoding="utf-8"))


def _config() -> str:
    """Return the configuration for the staged copy: the generator writes below its own folder only."""
    text = CONFIG.read_text(encoding="utf-8")
    if _SITE_LINE not in text:
        raise BadInputError(f"{CONFIG.name} has no line {_SITE_LINE.strip()}: keep it as it was")
    return text.replace(_SITE_LINE, 'site_dir = "site"\n')


if __name__ == "__main__":
    sys.exit(main())
