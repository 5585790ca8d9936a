"""A Dockerfile's steps, carried out without an engine."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.unit.packaging.dockerfile import Dockerfile, Instruction, Stage


@dataclass
class Build:
    """Carries out the stages of a Dockerfile below ``root``, on this machine's own system instead of the base image.

    What a COPY takes comes from ``context``; ``arguments`` are the build arguments, where absolute paths must lie below
    ``root``. What RUN steps do to files in ``/etc`` they do to copies below ``root``.
    """

    file: Dockerfile
    context: Path
    root: Path
    arguments: Mapping[str, str]

    def run(self, stage: Stage) -> dict[str, str]:
        """Carry out one stage; return the environment that it ends with. Raises CalledProcessError."""
        values = {name: os.environ[name] for name in ("PATH", "HOME")}
        shell, place = ["/bin/sh", "-c"], self.root
        for one in stage.instructions:
            match one.keyword:
                case "ARG" | "ENV":
                    values |= self._set(one, values)
                case "SHELL":
                    shell = json.loads(one.text)
                case "WORKDIR":
                    place = self._below(one.text)
                    place.mkdir(parents=True, exist_ok=True)
                case "COPY":
                    self._copy(_expanded(one.text, values), place)
                case "RUN":
                    self._run([*shell, self._on_copies(one.text)], place, values)
        return values

    def _set(self, one: Instruction, values: Mapping[str, str]) -> dict[str, str]:
        if one.keyword == "ARG":
            name, _, default = one.text.partition("=")
            return {name: self.arguments.get(name, default)}
        found = re.findall(r'(\w+)=("[^"]*"|\S+)', one.text)
        return {name: _expanded(value.strip('"'), values) for name, value in found}

    def _run(self, command: list[str], place: Path, values: Mapping[str, str]) -> None:
        # What a build engine hands on besides: how the network is reached.
        network = {name: value for name, value in os.environ.items() if re.search(r"PIP_|UV_|SSL_|(?i:_proxy)", name)}
        run = subprocess.run(
            command,
            cwd=place,
            env={**network, **values},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            raise subprocess.CalledProcessError(run.returncode, command, run.stdout, run.stderr)

    def _on_copies(self, text: str) -> str:
        for path in sorted(set(re.findall(r"/etc/[\w./-]+", text))):
            copy = self._below(path)
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy)
            text = text.replace(path, str(copy))
        return text

    def _below(self, path: str) -> Path:
        return Path(path) if Path(path).is_relative_to(self.root) else self.root / path.lstrip("/")

    def _copy(self, text: str, place: Path) -> None:
        if text.startswith("--from="):
            _, source, target = text.split()
            assert source == target, "stages share this machine's paths"
            assert Path(source).exists(), f"COPY {text}: no stage made it"
            return
        *taken, target = text.split()
        folder = self._below(target) if target.startswith("/") else place / target
        for name in taken:
            source = self.context / name
            if source.is_dir():
                shutil.copytree(source, folder, dirs_exist_ok=True)
            else:
                into = folder / source.name if target.endswith("/") else folder
                into.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, into)


def _expanded(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda found: values[found[1]], text)
