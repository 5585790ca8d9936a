"""The project itself: the lock, the core's purity, what must not be committed."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
CORE = (
    "model",
    "history",
    "snapshot",
    "allocation",
    "inference",
    "simulation",
    "decision",
    "rollout",
    "execution",
    "verification",
)


def locked() -> dict[str, Version]:
    pins = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^ ;\\]+)", LOCK, flags=re.MULTILINE)
    return {canonicalize_name(name): Version(version) for name, version in pins}


def declared() -> Iterator[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for texts in (project["dependencies"], *project["optional-dependencies"].values()):
        yield from (one for one in map(Requirement, texts) if one.name != project["name"])  # [all] names our own extras


def test_every_declared_dependency_is_locked_within_its_bounds() -> None:
    pins = locked()
    for requirement in declared():
        name = canonicalize_name(requirement.name)
        assert name in pins, f"{name} is not in requirements.lock: make lock"
        assert requirement.specifier.contains(pins[name]), f"{requirement} against {pins[name]}: make lock"


def test_every_locked_file_has_a_hash_and_no_address() -> None:
    blocks = re.split(r"\n(?=[A-Za-z0-9])", LOCK.strip())
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in LOCK
    assert set(re.findall(r"(?:^|\s)--(\w[\w-]*)", LOCK)) == {"hash"}


def test_pyspark_and_its_client_are_the_same_version() -> None:
    assert locked()["pyspark"] == locked()["pyspark-client"]


def test_pandas_is_below_3() -> None:
    assert locked()["pandas"] < Version("3")


CLOCKS = {"now", "utcnow", "today", "time", "monotonic", "perf_counter", "getenv", "open", "input", "print"}


@pytest.mark.parametrize("room", CORE)
def test_the_core_reads_no_clock_file_or_environment(room: str) -> None:
    for path in sorted((ROOT / "planner" / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                assert name not in CLOCKS, f"{path.name} line {node.lineno} calls {name}: pass it in as an argument"


def test_the_core_alone_imports_nothing_heavy() -> None:
    code = (
        "import sys, planner.pipeline;"
        "heavy = {'airflow', 'pyspark', 'pandas', 'kubernetes', 'confluent_kafka', 'jinja2'};"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
