"""A real PostgreSQL on loopback for an Airflow of several processes, as teams run it.

SQLite refuses who has read and goes on to write while another one writes ("database is locked"), whatever its timeout:
on a busy machine commands failed by that, and tasks. Debian's package has the server; its drivers, which the product
does not need, come from the package registry by the hashes of ``postgres.lock``.
"""

import contextlib
import hashlib
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.clusters.artifacts import FETCH_TIMEOUT_S, cached, find_program
from tests.clusters.errors import CannotRunHereError, StartFailedError
from tests.clusters.ports import lease_block
from tests.clusters.processes import ManagedProcess
from tests.clusters.workspace import workspace

_LOCK: Final = Path(__file__).with_name("postgres.lock")
_PACKAGED: Final = Path("/usr/lib/postgresql")
_USER: Final = "postgres"
_START_S: Final = 300.0
_QUICK: Final = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=300")
"""What is written is gone with the test: nothing has to survive a crash of the machine."""


@dataclass(frozen=True)
class Postgres:
    """A running server: the URL of its one database, and the folder of the drivers for Python."""

    url: str
    drivers: Path


@contextlib.contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Give a server of one's own. Raise CannotRunHereError where there is none, or no way to get its drivers."""
    programs, drivers = _programs(), _drivers()
    with contextlib.ExitStack() as undo:
        place = undo.enter_context(workspace("postgres"))
        lease = lease_block()
        undo.callback(lease.release)
        ours = _as_its_user(place)
        data = str(place / "data")
        made = subprocess.run(
            [*ours, str(programs / "initdb"), "-D", data, "-U", "airflow", "-A", "trust", "-E", "UTF8", "--no-sync"],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise StartFailedError(f"initdb failed: {made.stdout}{made.stderr}")
        settings = ("listen_addresses=127.0.0.1", f"port={lease.first}", "unix_socket_directories=", *_QUICK)
        words = [word for setting in settings for word in ("-c", setting)]
        server = ManagedProcess("postgres", [*ours, str(programs / "postgres"), "-D", data, *words], place)
        undo.callback(server.stop)
        server.start()
        server.wait_for_line("ready to accept connections", _START_S)
        yield Postgres(f"postgresql+psycopg2://airflow@127.0.0.1:{lease.first}/postgres", drivers)


def _programs() -> Path:
    """Return the folder of the newest server's programs; Debian keeps it off PATH."""
    versions = [path for path in _PACKAGED.glob("*/bin") if (path / "initdb").exists()]
    if versions:
        return max(versions, key=lambda path: int(path.parent.name))
    return Path(find_program("initdb")).parent


def _as_its_user(place: Path) -> Sequence[str]:
    """Let the server's user own ``place``; return what makes a command run as that user. It refuses to be root."""
    if os.geteuid() != 0:
        return ()
    try:
        user = pwd.getpwnam(_USER)
    except KeyError:
        raise CannotRunHereError(_USER, "PostgreSQL does not run as root, and there is no user of this name") from None
    os.chown(place, user.pw_uid, user.pw_gid)
    place.parent.chmod(0o711)  # it may pass through; each workspace in it is closed to others
    rights = (f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--pdeathsig=KILL")
    return (find_program("setpriv"), *rights)


def _drivers() -> Path:
    """Return the folder of the drivers, fetched once."""
    digest = hashlib.sha256(_LOCK.read_bytes() + sys.version.encode()).hexdigest()[:16]
    return cached("postgres-drivers", digest, _fetch)


def _fetch(folder: Path) -> None:
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or find_program("uv")
    words = [uv, "pip", "install", "--quiet", "--python", sys.executable, "--require-hashes", "--no-deps"]
    done = subprocess.run(
        [*words, "--target", str(folder), "-r", str(_LOCK)],
        capture_output=True,
        text=True,
        check=False,
        timeout=FETCH_TIMEOUT_S,
    )
    if done.returncode:
        raise CannotRunHereError("registry", f"the drivers of PostgreSQL did not come: {done.stderr.strip()}")
