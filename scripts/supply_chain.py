"""What we depend on: the lock as a bill of materials (CycloneDX 1.6), licences, and advisories where a network allows.

    python -m scripts.supply_chain sbom        write sbom.cdx.json, which the wheel carries (PEP 770)
    python -m scripts.supply_chain licences    write docs/licences.md; exit 1 for a licence that is not on the list
    python -m scripts.supply_chain audit       ask OSV for advisories: exit 1 with any, 3 where it is not reached

The lock names packages, versions and hashes; licences are what the installed packages say of themselves.
"""

import json
import re
import sys
import urllib.request
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import metadata
from pathlib import Path
from typing import Any, Final

from planner.errors import DocumentError, OutOfReachError, PlannerError, RefusedError
from planner.storage.files import write_atomically
from planner.text.bounded import MOST_BYTES, bounded_json

ROOT: Final = Path(__file__).parents[1]
LOCK, SBOM, PAGE = ROOT / "requirements.lock", ROOT / "sbom.cdx.json", ROOT / "docs" / "licences.md"
ADVISORIES: Final = "https://api.osv.dev/v1/querybatch"
_TIMEOUT_S: Final = 30.0
_PIN: Final = re.compile(r"(?m)^([a-z0-9-]+)==([^ \\;\n]+)(.*(?:\n    .*)*)")
_HASH: Final = re.compile("--hash=sha256:([0-9a-f]{64})")
_MOST_PAGES: Final = 50
"""Of OSV's answers about the lock: some packages have hundreds of advisories."""
_ALLOWED: Final = frozenset(
    (
        *("0BSD", "Apache-2.0", "Artistic-1.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0"),
        *("Apache-2.0 WITH LLVM-exception", "LicenseRef-BSD", "MPL-2.0", "PSF-2.0", "Unlicense", "Zlib"),
    )
)
"""None asks more of our users than to keep notices; MPL asks for changes of its own files, of which we make none."""
_SPELT: Final[Mapping[str, str]] = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "Artistic License": "Artistic-1.0",
    "BSD License": "LicenseRef-BSD",
    "GNU General Public License (GPL)": "GPL-2.0-or-later",
    "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
"""What packages say that name no SPDX expression; which BSD licence "BSD License" is they do not say."""
_EITHER: Final = frozenset({"text-unidecode"})
"""Packages that offer their licences for choice; of others all that they name counts."""
_NO_LICENCE: Final = ("DFSG approved", "OSI Approved")


@dataclass(frozen=True, slots=True)
class Locked:
    """One package of the lock, with the SHA-256 of each file that may be installed of it."""

    name: str
    version: str
    hashes: tuple[str, ...]

    @property
    def purl(self) -> str:
        """The package URL, by which tools know it."""
        return f"pkg:pypi/{self.name}@{self.version}"


def locked(text: str) -> tuple[Locked, ...]:
    """Return the packages of a lock by name. Raises ``DocumentError`` for a text that has none."""
    found = tuple(Locked(name, version, tuple(_HASH.findall(rest))) for name, version, rest in _PIN.findall(text))
    if not found:
        raise DocumentError(f"{LOCK.name}: found no package, expected lines like numpy==2.3.5: run make lock")
    return found


def licence_of(name: str) -> str:
    """Return the SPDX expression that the installed package states. Raises ``PackageNotFoundError``."""
    said = metadata(name)
    if expression := said.get("License-Expression"):
        return str(expression)
    classifiers = [text.rpartition(" :: ")[2] for text in said.get_all("Classifier") or () if text[:7] == "License"]
    named = sorted({_SPELT.get(text, text) for text in classifiers if text not in _NO_LICENCE})
    if named:
        return (" OR " if name in _EITHER else " AND ").join(named)
    text = str(said.get("License") or "unknown").splitlines()[0]
    return _SPELT.get(text, text)


def is_allowed(expression: str) -> bool:
    """True when all licences of one side of each ``OR`` are on the list."""
    sides = expression.replace("(", "").replace(")", "").split(" OR ")
    return any(set(side.split(" AND ")) <= _ALLOWED for side in sides)


def bill(packages: Sequence[Locked]) -> str:
    """Return the bill of materials; equal locks give equal bytes."""
    components = [
        {
            "type": "library",
            "bom-ref": package.purl,
            "name": package.name,
            "version": package.version,
            "purl": package.purl,
            "licenses": [{"expression": licence_of(package.name)}],
            "externalReferences": [_distribution(package)],
        }
        for package in packages
    ]
    names = " ".join(package.purl for package in packages)
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, names)}",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": "consumer-planner", "name": "consumer-planner"}},
        "components": components,
        "dependencies": [{"ref": "consumer-planner", "dependsOn": [package.purl for package in packages]}],
    }
    text = json.dumps(document, indent=1) + "\n"
    return _HASH_LINES.sub(r'{"alg": "SHA-256", "content": "\1"}', text)


_HASH_LINES: Final = re.compile(r'\{\s+"alg": "SHA-256",\s+"content": "([0-9a-f]{64})"\s+\}')
"""One line for each of thousands of hashes."""


def _distribution(package: Locked) -> Mapping[str, Any]:
    """Return the files of which one is installed, by their hashes: a component's own hash would be one of them."""
    hashes = [{"alg": "SHA-256", "content": content} for content in package.hashes]
    return {"type": "distribution", "url": package.purl, "hashes": hashes}


def licences_page(packages: Sequence[Locked]) -> str:
    """Return the page of all licences as Markdown. Raises ``RefusedError`` for one that is not on the list."""
    rows = [(package, licence_of(package.name)) for package in packages]
    wrong = [f"{package.name} ({licence})" for package, licence in rows if not is_allowed(licence)]
    if wrong:
        raise RefusedError("Licence", f"not on the list: {', '.join(wrong)}: replace them, or have the list widened")
    lines = [f"| {package.name} | {package.version} | {licence} |" for package, licence in rows]
    return _PAGE.format(allowed=", ".join(sorted(_ALLOWED)), rows="\n".join(lines))


_PAGE: Final = """# Licences

Under which licences are the packages that we depend on?

All that `requirements.lock` names, also those that only tests, Airflow or Spark need. `make supply-chain` writes this
page from what the installed packages state, and fails for a licence that is not among these: {allowed}. Of two,
separated by `OR`, one is enough. `LicenseRef-BSD` is a BSD licence of which the package does not say which.

The same list is a bill of materials (CycloneDX 1.6, `sbom.cdx.json`), which the wheel carries in `.dist-info/sboms`,
with the hashes of all files that the lock allows of each package.
`python -m scripts.supply_chain audit` asks OSV for advisories on exactly these versions, all pages of them: exit 0 for
none, 1 with a line for each package that has any, 3 where OSV is not reached.

| Package | Version | Licence |
|---|---|---|
{rows}
"""


def advisories(packages: Sequence[Locked], url: str = ADVISORIES) -> Sequence[str]:
    """Return a line for each package with advisories, of all pages. Raises ``OutOfReachError`` where nobody answers."""
    found: dict[str, list[str]] = {}
    asked: list[dict[str, Any]] = [{"package": {"purl": package.purl}} for package in packages]
    for _ in range(_MOST_PAGES):
        results = _results(url, asked)
        for query, result in zip(asked, results, strict=True):
            ids = [advisory["id"] for advisory in result.get("vulns") or ()]
            found.setdefault(query["package"]["purl"], []).extend(ids)
        pages = [(query, result.get("next_page_token")) for query, result in zip(asked, results, strict=True)]
        asked = [{**query, "page_token": token} for query, token in pages if token]
        if not asked:
            return [f"{purl}: {', '.join(ids)}" for purl, ids in found.items() if ids]
    raise OutOfReachError(f"{url}: more than {_MOST_PAGES} pages of advisories: the lock is not audited, try again")


def _results(url: str, queries: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    request = urllib.request.Request(url, json.dumps({"queries": queries}).encode())  # noqa: S310  https, above
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            results: list[dict[str, Any]] = bounded_json(answer.read(MOST_BYTES + 1))["results"]
        if len(results) != len(queries) or not all(isinstance(result, dict) for result in results):
            raise ValueError(f"{len(results)} results to {len(queries)} queries")
        return results
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OutOfReachError(
            f"not reached: {url} ({error}): the lock is not audited, try where a network is"
        ) from error


def main(arguments: Sequence[str]) -> int:
    """Do what the first argument names; return the exit code."""
    packages = locked(LOCK.read_text(encoding="utf-8"))
    match arguments:
        case ["sbom"]:
            write_atomically(SBOM, bill(packages))
        case ["licences"]:
            write_atomically(PAGE, licences_page(packages))
        case ["audit"]:
            lines = advisories(packages)
            print("\n".join(lines) or f"no advisory on {len(packages)} packages")
            return 1 if lines else 0
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except PlannerError as failure:
        print(f"supply chain: {failure}", file=sys.stderr)
        sys.exit(failure.exit_code)
