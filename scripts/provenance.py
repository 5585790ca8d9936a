"""What a release was built from: an in-toto statement with SLSA provenance (v1) of its files and images.

    python -m scripts.provenance write FILE... --builder URI [--image NAME@sha256:DIGEST] [--base NAME@sha256:DIGEST]
    python -m scripts.provenance check FILE...

``write`` makes provenance.json beside the first file, and refuses a checkout that is not its commit; ``check`` says
which of the files are not those that were stated. Nobody has signed the statement: sign it as you sign images.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from planner.errors import BadInputError, PlannerError
from planner.storage.files import write_atomically
from planner.text.bounded import bounded_json

ROOT: Final = Path(__file__).parents[1]
FILE: Final = "provenance.json"
_BUILD_TYPE: Final = "https://consumerplanner.dev/release/v1"
"""The steps of docs/releases/index.md, by a name that is a URI, as SLSA asks."""
_IMAGE: Final = re.compile(r"(\S+)@sha256:([0-9a-f]{64})")
_MATERIALS: Final = ("requirements.lock", "sbom.cdx.json", "pyproject.toml")
Descriptor = Mapping[str, Any]


def statement(
    files: Sequence[Path], builder: str, images: Sequence[str], bases: Sequence[str], root: Path = ROOT
) -> dict[str, Any]:
    """Return the statement: subjects are files and images, dependencies the commit, the lock and base images.

    Raises ``BadInputError`` for a checkout with changes, an image without its digest, and a file of another version.
    """
    commit = _commit(root)
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    for file in files:
        if f"-{version}" not in file.name:
            raise BadInputError(f"{file}: expected a file of version {version}, by pyproject.toml: build it anew")
    materials = [_of_file(root / name, name) for name in _MATERIALS]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [*(_of_file(file, file.name) for file in files), *map(_of_image, images)],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD_TYPE,
                "externalParameters": {"version": version},
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": commit}},
                    *materials,
                    *map(_of_image, bases),
                ],
            },
            "runDetails": {"builder": {"id": builder}},
        },
    }


def differences(text: bytes, files: Sequence[Path]) -> list[str]:
    """Return a sentence for each file that the statement does not name with its hash."""
    try:
        stated = {subject["name"]: subject["digest"]["sha256"] for subject in bounded_json(text)["subject"]}
    except (ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"{FILE}: found no statement ({error!r}), expected one by scripts.provenance") from error
    sentences = (_difference(file, stated.get(file.name)) for file in files)
    return [sentence for sentence in sentences if sentence]


def _difference(file: Path, stated: str | None) -> str | None:
    found = _sha256(file)
    if stated == found:
        return None
    return f"{file.name}: {f'expected sha256 {stated}, found {found}' if stated else 'is not in the statement'}"


def _commit(root: Path) -> str:
    changed = _git(root, "status", "--porcelain")
    if changed:
        first = changed.splitlines()[0]
        raise BadInputError(f"{root} is not what was committed ({first}): commit or remove it, then build")
    return _git(root, "rev-parse", "HEAD")


def _git(root: Path, *arguments: str) -> str:
    asked = ["git", "-C", str(root), *arguments]
    try:
        return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise BadInputError(f"{root} is no checkout of git ({error}): build where the commit is known") from error


def _of_file(path: Path, name: str) -> Descriptor:
    return {"name": name, "digest": {"sha256": _sha256(path)}}


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}): build it first") from error


def _of_image(image: str) -> Descriptor:
    match = _IMAGE.fullmatch(image)
    if match is None:
        raise BadInputError(f"image {image}: expected NAME@sha256:DIGEST, as the push of the image printed it")
    return {"name": match[1], "digest": {"sha256": match[2]}}


def main(arguments: Sequence[str]) -> int:
    """Write or check; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.provenance", description=__doc__)
    parser.add_argument("action", choices=("write", "check"))
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--builder", default="", help="who builds, as a URI: the CI's run")
    parser.add_argument("--image", action="append", default=[], help="an image of the release, by its digest")
    parser.add_argument("--base", action="append", default=[], help="an image that was built upon, by its digest")
    given = parser.parse_args(arguments)
    target = given.files[0].parent / FILE
    if given.action == "write":
        if ":" not in given.builder:
            raise BadInputError(
                f"--builder {given.builder!r}: expected who builds, as a URI like https://ci.example/run/7"
            )
        made = statement(given.files, given.builder, given.image, given.base)
        write_atomically(target, json.dumps(made, indent=1) + "\n")
        return 0
    if not target.exists():
        raise BadInputError(f"{target} is not there: take it from the release, beside its files")
    wrong = differences(target.read_bytes(), given.files)
    print("\n".join(wrong) or f"{len(given.files)} files are those of {target}")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except PlannerError as failure:
        print(f"provenance: {failure}", file=sys.stderr)
        sys.exit(failure.exit_code)
