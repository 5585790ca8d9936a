"""Our own Java programs as jars, and archives of the classes that a program loads."""

import hashlib
import os
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tests.clusters.artifacts import cached, find_program
from tests.clusters.errors import StartFailedError

_PROGRAM, _ARCHIVE = "program.jar", "classes.jsa"


def program_jars(kind: str, sources: Sequence[Path], jars: Sequence[Path]) -> tuple[Path, ...]:
    """Return the class path of the program in ``sources``, which is compiled where that was not done yet.

    Raise CannotRunHereError without javac, StartFailedError when it objects.
    """
    digest = hashlib.sha256("\n".join(map(str, jars)).encode())
    for source in sources:
        digest.update(source.read_bytes())
    kept = cached(kind, digest.hexdigest()[:16], lambda fresh: _compile(sources, jars, fresh))
    return (kept / _PROGRAM, *jars)


def archive_options(program: str, jars: Sequence[Path], run: Callable[[str], object]) -> tuple[str, ...]:
    """Return options by which a JVM with this class path takes its classes from an archive (JEP 350).

    It then starts in half of the processor's time, and tests start hundreds. The first time on this machine ``run``
    runs the program with the option that it is given, by which the JVM keeps its classes when it ends by itself or by
    SIGTERM. A JVM that cannot use the archive goes on without it, and so do we where none could be made.
    """
    digest = hashlib.sha256("\n".join([program, *map(str, jars)]).encode()).hexdigest()[:16]

    def make(fresh: Path) -> None:
        with suppress(StartFailedError):
            run(f"-XX:ArchiveClassesAtExit={fresh / _ARCHIVE}")

    archive = cached("class-archives", digest, make) / _ARCHIVE
    return (f"-XX:SharedArchiveFile={archive}",) if archive.exists() else ()


def _compile(sources: Sequence[Path], jars: Sequence[Path], target: Path) -> None:
    classes = target / "classes"
    classes.mkdir()
    command = [find_program("javac"), "-nowarn", "-d", str(classes), "-cp", os.pathsep.join(map(str, jars))]
    run = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise StartFailedError(f"javac ended with {run.returncode}\n{run.stderr}")
    with zipfile.ZipFile(target / _PROGRAM, "w") as jar:  # an archive takes classes from jars alone
        for file in sorted(classes.rglob("*.class")):
            jar.write(file, file.relative_to(classes))
