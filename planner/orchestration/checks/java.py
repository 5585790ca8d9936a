"""The Java that Spark takes: ``JAVA_HOME``'s, else the first on the path."""

import os
import re
import subprocess
from collections.abc import Iterator
from typing import Final

from planner.errors import OutOfReachError
from planner.orchestration.checks.result import CheckSettings

OLDEST_JAVA: Final = 17


def check_java_result(_: CheckSettings) -> Iterator[tuple[bool, str]]:
    """Say which Java Spark would run on. Raises ``OutOfReachError`` where there is none that it can."""
    yield True, f"Java {check_java()} at {java_version()[0]} runs, {OLDEST_JAVA} or newer was expected"


def check_java() -> int:
    """Return the major version of Java. Raises ``OutOfReachError`` unless there is one that Spark can run on."""
    java, output = java_version()
    version = re.search(r'version "(\d+)', output)
    if version is None or int(version[1]) < OLDEST_JAVA:
        actual = f"version {version[1]}" if version else f"none at {java}"
        raise OutOfReachError(
            f"Spark needs Java {OLDEST_JAVA} or newer, found {actual}: install it "
            f"(Debian, Ubuntu: apt-get install openjdk-{OLDEST_JAVA}-jre-headless), then run again"
        )
    return int(version[1])


def java_version() -> tuple[str, str]:
    """Return the Java that Spark takes, and what it says of its version; nothing where it cannot be run."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else "java"
    try:
        return java, subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    except OSError:
        return java, ""
