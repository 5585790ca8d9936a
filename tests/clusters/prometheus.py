"""A real Prometheus on loopback, from Debian's package: it scrapes what tests run, or is given recorded samples."""

import contextlib
import platform
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.clusters.artifacts import FETCH_TIMEOUT_S, cached, find_program
from tests.clusters.errors import CannotRunHereError, StartFailedError
from tests.clusters.ports import lease_block
from tests.clusters.processes import ManagedProcess
from tests.clusters.workspace import workspace

READY_S = 300.0
USER, PASSWORD = "planner", "correct horse"
_PASSWORD_HASH = (
    "$2b$04$gwCk0es3SuDHqZ54.ID1Y.kGPFqR/HASK56SQM3TGtfWyrCNA02FG"  # bcrypt of PASSWORD, all that Prometheus takes
)


class PrometheusServer:
    """A running server. A context manager: leaving it stops it and deletes all files.

    ``jobs`` maps a job's name to the addresses that are scraped every ``scrape_s`` seconds under ``/metrics``.
    ``blocks`` is an OpenMetrics text with times: the server has these samples from its start, however old they are.
    ``certificate`` (certificate and key, PEM) makes it speak TLS; with ``guarded`` it wants ``USER`` and ``PASSWORD``.
    """

    def __init__(
        self,
        jobs: Mapping[str, Sequence[str]] | None = None,
        *,
        scrape_s: float = 1.0,
        blocks: Path | None = None,
        certificate: tuple[Path, Path] | None = None,
        guarded: bool = False,
    ) -> None:
        programs = programs_home()
        self._certificate = certificate
        self._undo = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            self.directory = undo.enter_context(workspace("prometheus"))
            lease = lease_block()
            undo.callback(lease.release)
            self.address = f"127.0.0.1:{lease.first}"
            (self.directory / "prometheus.yml").write_text(_config(jobs or {}, scrape_s))
            (self.directory / "web.yml").write_text(_web_config(certificate, guarded=guarded))
            if blocks is not None:
                create_blocks(blocks, self.directory / "data")
            self.process = ManagedProcess("prometheus", self._argv(programs), self.directory)
            undo.callback(self.process.stop)
            self.process.start()
            self.process.wait_until("its word that it is ready", self._is_ready, READY_S)
            self._undo = undo.pop_all()

    @property
    def url(self) -> str:
        """Where its API is, without account."""
        return f"{'https' if self._certificate else 'http'}://{self.address}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop it and delete its files. Stopping twice does nothing."""
        self._undo.close()

    def _argv(self, programs: Path) -> list[str]:
        return [
            str(programs / "prometheus"),
            "--config.file=prometheus.yml",
            "--web.config.file=web.yml",
            "--storage.tsdb.path=data",
            "--storage.tsdb.retention.time=20y",
            f"--web.listen-address={self.address}",
        ]

    def _is_ready(self) -> bool:
        context = None
        if self._certificate:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5, context=context) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as error:
            return error.code == 401  # the account is asked for before anything else
        except OSError:
            return False


def create_blocks(open_metrics: Path, target: Path) -> None:
    """Write the samples of an OpenMetrics text with times as blocks of a Prometheus database."""
    command = [str(programs_home() / "promtool"), "tsdb", "create-blocks-from", "openmetrics"]
    command += ["--max-block-duration=744h", str(open_metrics), str(target)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise StartFailedError(f"promtool ended with {run.returncode}\n{run.stderr[-2000:]}")


def programs_home() -> Path:
    """Return the directory of ``prometheus`` and ``promtool``; raise CannotRunHereError where they cannot be had."""
    try:
        release = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    except OSError as error:
        raise CannotRunHereError("Prometheus", "it comes from Debian's packages, and this is no Debian") from error
    return cached("prometheus", f"{release}-{platform.machine()}", _fetch) / "usr" / "bin"


def _fetch(target: Path) -> None:
    """Unpack Debian's package below ``target``: nothing is installed and nothing of the system is changed."""
    if not _downloaded(target):
        # A fresh machine has no package lists; ours are kept beside, since the system's are root's.
        lists = target / "lists"
        (lists / "partial").mkdir(parents=True)
        own = ["-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={target}", "-o", "Debug::NoLocking=1"]
        _run([find_program("apt-get"), *own, "-q", "update"], target)
        if not _downloaded(target, *own):
            raise CannotRunHereError("Prometheus", "apt-get knows no package prometheus")
        shutil.rmtree(lists)
    (package,) = target.glob("prometheus_*.deb")
    _run([find_program("dpkg-deb"), "-x", str(package), str(target)], target)
    package.unlink()


def _downloaded(target: Path, *options: str) -> bool:
    command = [find_program("apt-get"), *options, "-q", "download", "prometheus"]
    try:
        run = subprocess.run(command, cwd=target, capture_output=True, timeout=FETCH_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise CannotRunHereError("Prometheus", f"not fetched in {FETCH_TIMEOUT_S:g} s") from error
    return run.returncode == 0


def _run(command: Sequence[str], directory: Path) -> None:
    try:
        run = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise CannotRunHereError("Prometheus", f"{Path(command[0]).name}: no end in {FETCH_TIMEOUT_S:g} s") from error
    if run.returncode != 0:
        raise CannotRunHereError("Prometheus", f"{Path(command[0]).name}: {run.stderr.strip().splitlines()[-1:]}")


def _config(jobs: Mapping[str, Sequence[str]], scrape_s: float) -> str:
    scrapes = "".join(
        f"  - job_name: {job}\n    static_configs:\n      - targets: [{', '.join(targets)}]\n"
        for job, targets in jobs.items()
    )
    interval = f"{int(scrape_s * 1000)}ms"
    return (
        f"global:\n  scrape_interval: {interval}\n  scrape_timeout: {interval}\nscrape_configs:\n{scrapes}"
        if jobs
        else "global: {}\n"
    )


def _web_config(certificate: tuple[Path, Path] | None, *, guarded: bool) -> str:
    tls = f"tls_server_config:\n  cert_file: {certificate[0]}\n  key_file: {certificate[1]}\n" if certificate else ""
    users = f"basic_auth_users:\n  {USER}: {_PASSWORD_HASH}\n" if guarded else ""
    return tls + users
