"""Images as this machine can have them: a Dockerfile's steps carried out, and what they made run as in an image."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.clusters.artifacts import find_program
from tests.clusters.errors import CannotRunHereError
from tests.unit.packaging.build import Build
from tests.unit.packaging.dockerfile import Dockerfile, parse

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Built:
    """An image's file system, built below ``root`` of this machine's own one.

    ``prefix`` is where the virtual environment was made, which is no other place in the image.
    """

    file: Dockerfile
    root: Path
    prefix: Path
    environment: Mapping[str, str]

    def run(self, *words: str, cwd: str = "/") -> subprocess.CompletedProcess[str]:
        """Run words as the image would, in its environment and nothing else."""
        return subprocess.run(
            words, env=dict(self.environment), capture_output=True, text=True, timeout=300, check=False, cwd=cwd
        )


def built(name: str, folder: Path, arguments: Mapping[str, str]) -> Built:
    """Carry out a Dockerfile on what .dockerignore lets through."""
    context, root = folder / "context", folder / "root"
    root.mkdir(parents=True)
    context.mkdir()
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line.startswith("!"):
            source, target = ROOT / line[1:], context / line[1:]
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, target)
    file = parse((ROOT / "images" / name / "Dockerfile").read_text())
    build = Build(file, context, root, {"PREFIX": str(root / "opt" / "planner"), **arguments})
    environment: Mapping[str, str] = {}
    for stage in file.stages:
        if stage.name != "java":
            environment = build.run(stage)
    said = {name: environment[name] for text in file.image.all("ENV") for name in re.findall(r"(\w+)=", text)}
    return Built(file, root, root / "opt" / "planner", said)


def read_only(*writable: str, volumes: Sequence[str] = (), placed: Mapping[str, Path] | None = None) -> list[str]:
    """Return words before a command that give it a root file system on which it can write to these folders alone.

    ``volumes`` are empty folders of its own, and ``placed`` are files and folders by the places at which it has them;
    the machine must have something to mount each on (``mount_points``). Raise CannotRunHereError where the kernel lets
    us make no mount namespace.
    """
    unshare = [find_program("unshare"), "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    kept = "".join(
        [
            *(f"mount --bind {folder} {folder} && " for folder in writable),
            *(f"mount -t tmpfs -o mode=1777 volume {folder} && " for folder in volumes),
            *(
                f"mount --bind {source} {place} && mount -o remount,ro,bind {place} && "
                for place, source in (placed or {}).items()
            ),
        ]
    )
    # The folder that it runs in is entered anew: else it would still be the one below the mounts, which is read-only.
    entered = 'mount -o remount,ro,bind / && cd "$PWD" && exec "$@"'
    words = [*unshare, "sh", "-c", f"{kept} {entered}", "read-only"]
    tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        raise CannotRunHereError("a read-only root", tried.stderr.strip())
    return words


def as_user(image: Built) -> list[str]:
    """Return words before a command that make it the image's user, who has no rights of an administrator."""
    user, group = image.file.image.all("USER")[-1].split(":")
    return [find_program("unshare"), "--user", f"--map-user={user}", f"--map-group={group}"]


@contextmanager
def mount_points(*folders: str) -> Iterator[None]:
    """Have these folders on the machine meanwhile, to mount volumes on; raise CannotRunHereError where it forbids."""
    missing = [Path(folder) for folder in folders if not Path(folder).exists()]
    try:
        for folder in missing:
            folder.mkdir()
        yield
    except PermissionError as error:
        raise CannotRunHereError("a folder to mount a volume on", str(error)) from error
    finally:
        for folder in missing:
            if folder.exists():
                folder.rmdir()
