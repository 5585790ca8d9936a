"""The lock as a bill of materials, its licences, and what an audit says where nobody answers."""

import json
import re
import subprocess
import sys
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from planner.errors import DocumentError, OutOfReachError, RefusedError
from scripts import supply_chain

PACKAGES = supply_chain.locked(supply_chain.LOCK.read_text())
NOBODY = "http://127.0.0.1:9/"


def test_the_bill_and_the_page_are_those_of_the_lock() -> None:
    assert supply_chain.SBOM.read_text() == supply_chain.bill(PACKAGES), "run make supply-chain"
    assert supply_chain.PAGE.read_text() == supply_chain.licences_page(PACKAGES), "run make supply-chain"
    assert {"numpy", "pydantic", "apache-airflow", "pyspark"} <= {package.name for package in PACKAGES}


def test_the_wheel_carries_the_bill(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=supply_chain.ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        (name,) = [name for name in files.namelist() if ".dist-info/sboms/" in name]
        bill = json.loads(files.read(name))
    assert (bill["bomFormat"], len(bill["components"])) == ("CycloneDX", len(PACKAGES))


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("GPL-2.0-only OR Artistic-1.0", True),
        ("MIT AND GPL-3.0-only", False),
        ("AGPL-3.0", False),
        ("unknown", False),
    ],
)
def test_one_side_of_each_or_must_be_on_the_list(licence: str, allowed: bool) -> None:
    assert supply_chain.is_allowed(licence) is allowed


def test_a_licence_that_is_not_on_the_list_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supply_chain, "licence_of", lambda name: "AGPL-3.0" if name == "numpy" else "MIT")
    with pytest.raises(RefusedError, match=r"numpy \(AGPL-3\.0\)"):
        supply_chain.licences_page(PACKAGES)


def test_an_audit_that_reaches_nobody_says_so() -> None:
    with pytest.raises(OutOfReachError, match=r"not reached: .* the lock is not audited"):
        supply_chain.advisories(PACKAGES, NOBODY)


class Osv(BaseHTTPRequestHandler):
    """Answers about each package by two pages, and asks for the second by a token, as api.osv.dev does."""

    def do_POST(self) -> None:
        queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        content = json.dumps({"results": [_page(query) for query in queries]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _page(query: dict[str, Any]) -> dict[str, Any]:
    if "numpy" not in query["package"]["purl"]:
        return {}
    is_second = query.get("page_token") == "next"
    return {"vulns": [{"id": "B"}]} if is_second else {"vulns": [{"id": "A"}], "next_page_token": "next"}


def test_an_audit_reads_all_pages() -> None:
    """Red when only the first is read: an advisory on the second is missed, and the audit says there is none more."""
    with HTTPServer(("127.0.0.1", 0), Osv) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        lines = supply_chain.advisories(PACKAGES, f"http://127.0.0.1:{server.server_port}/")
        server.shutdown()
    (version,) = {package.version for package in PACKAGES if package.name == "numpy"}
    assert lines == [f"pkg:pypi/numpy@{version}: A, B"]


def test_the_bill_has_the_hashes_of_the_lock() -> None:
    bill = json.loads(supply_chain.bill(PACKAGES))
    hashes = [entry["content"] for one in bill["components"] for entry in one["externalReferences"][0]["hashes"]]
    assert hashes == re.findall("sha256:([0-9a-f]{64})", supply_chain.LOCK.read_text())
    assert len(hashes) > 3_000


def test_a_lock_without_packages_is_refused() -> None:
    with pytest.raises(DocumentError, match="found no package"):
        supply_chain.locked("# nothing")
