"""What a release was built from: a clean commit alone, by hashes; a file that was changed afterwards is named."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from planner.errors import BadInputError
from scripts import provenance

IMAGE = "registry.example/consumer-planner-controller@sha256:" + "a" * 64
BASE = "python:3.11-slim@sha256:" + "b" * 64
BUILDER = "https://ci.example/run/7"


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    asked = ["git", *who, "-C", str(folder), *arguments]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout of one commit, with a wheel that Git ignores."""
    folder = tmp_path / "checkout"
    (folder / "dist").mkdir(parents=True)
    (folder / ".gitignore").write_text("/dist/\n")
    (folder / "pyproject.toml").write_text('[project]\nname = "p"\nversion = "1.2.3"\n')
    for name in ("requirements.lock", "sbom.cdx.json"):
        (folder / name).write_text(name)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "all")
    (folder / "dist" / "p-1.2.3-py3-none-any.whl").write_bytes(b"wheel")
    return folder


def wheel(checkout: Path) -> Sequence[Path]:
    return list((checkout / "dist").glob("*.whl"))


def test_it_names_commit_lock_bases_files_and_images_by_their_hashes(checkout: Path) -> None:
    made = provenance.statement(wheel(checkout), BUILDER, [IMAGE], [BASE], checkout)
    digests = {subject["name"]: subject["digest"] for subject in made["subject"]}
    assert digests == {
        "p-1.2.3-py3-none-any.whl": {"sha256": "ba59926159d2aa256eb8739b8da7e2b574b960e1202c6d624cbe981cef996c91"},
        "registry.example/consumer-planner-controller": {"sha256": "a" * 64},
    }
    built_from = {one["name"]: one["digest"] for one in made["predicate"]["buildDefinition"]["resolvedDependencies"]}
    assert built_from["source"] == {"gitCommit": git(checkout, "rev-parse", "HEAD")}
    assert built_from["python:3.11-slim"] == {"sha256": "b" * 64}
    assert {"requirements.lock", "sbom.cdx.json", "pyproject.toml"} < built_from.keys()


def test_a_checkout_with_changes_is_no_commit(checkout: Path) -> None:
    (checkout / "requirements.lock").write_text("other")
    with pytest.raises(BadInputError, match=r"is not what was committed \(M requirements.lock\)"):
        provenance.statement(wheel(checkout), BUILDER, [], [], checkout)


@pytest.mark.parametrize("image", ["planner:1.2.3", "planner@sha256:abc", f"planner@sha256:{'A' * 64}"])
def test_an_image_without_its_digest_is_refused(checkout: Path, image: str) -> None:
    with pytest.raises(BadInputError, match="expected NAME@sha256:DIGEST"):
        provenance.statement(wheel(checkout), BUILDER, [image], [], checkout)


def test_a_file_of_another_version_is_refused(checkout: Path) -> None:
    old = checkout / "dist" / "p-1.2.2-py3-none-any.whl"
    old.write_bytes(b"old")
    with pytest.raises(BadInputError, match=r"expected a file of version 1\.2\.3"):
        provenance.statement([old], BUILDER, [], [], checkout)


def test_a_file_that_was_changed_or_is_not_stated_is_named(checkout: Path) -> None:
    (file,) = wheel(checkout)
    text = json.dumps(provenance.statement([file], BUILDER, [], [], checkout)).encode()
    assert provenance.differences(text, [file]) == []
    file.write_bytes(b"another")
    other = file.with_name("q.whl")
    other.write_bytes(b"q")
    changed, unknown = provenance.differences(text, [file, other])
    assert changed.startswith(f"{file.name}: expected sha256 ")
    assert unknown == "q.whl: is not in the statement"
    with pytest.raises(BadInputError, match="found no statement"):
        provenance.differences(b"[]", [file])
