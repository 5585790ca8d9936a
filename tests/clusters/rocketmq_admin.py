"""RocketMQ's own ``mqadmin``, from the jars of the servers: one JVM for each command, as operators run it."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.clusters.artifacts import find_program
from tests.clusters.errors import ClusterError

_JVM = ("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
_LIMIT_S = 300


@dataclass(frozen=True)
class MQAdmin:
    """``mqadmin`` of one cluster; ``home`` is a folder of its own, ``jars`` those of the servers."""

    name_server: str
    home: Path
    jars: Sequence[Path]

    def sign_as(self, access_key: str, secret_key: str) -> None:
        """Let all later commands be signed by this account."""
        conf = self.home / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        (conf / "tools.yml").write_text(f'accessKey: {access_key}\nsecretKey: "{secret_key}"\n')

    def run(self, command: str, options: Mapping[str, str] | None = None) -> str:
        """Return what the command printed. Its exit code tells nothing: judge by the text.

        Raise ClusterError when it does not end.
        """
        self.home.mkdir(parents=True, exist_ok=True)
        words = [word for name, value in (options or {}).items() for word in (f"-{name}", value)]
        argv = [
            find_program("java"),
            *_JVM,
            f"-Duser.home={self.home}",
            f"-Drocketmq.home.dir={self.home}",
            *("-cp", os.pathsep.join(map(str, self.jars)), "org.apache.rocketmq.tools.command.MQAdminStartup"),
            *(command, "-n", self.name_server, *words),
        ]
        try:
            ended = subprocess.run(argv, cwd=self.home, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"mqadmin {command} did not end within {_LIMIT_S} s") from error
        return ended.stdout + ended.stderr
