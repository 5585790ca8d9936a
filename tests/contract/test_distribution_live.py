"""Wheel and sdist as a stranger gets them: built, installed into empty environments, tried on the recordings."""

import configparser
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDINGS = {
    "two-brokers-day": ROOT / "examples/policies/shop-orders.yaml",
    "kafka-restart-overload": ROOT / "examples/kafka/recorded-payments.yaml",
}

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1_800)]


def run(*command: str | Path, cwd: Path, codes: tuple[int, ...] = (0,), **more: str) -> str:
    """Run a command without our checkout in its path, with these variables, too; return what it prints."""
    env = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}} | more
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode in codes, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def build(source: Path, kind: str, target: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", target, cwd=source)
    (built,) = target.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def install(home: Path, what: str) -> Path:
    """Return the ``planner`` of a new environment that holds ``what`` and its locked dependencies."""
    run(sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable, home / "env", cwd=home)
    constraints = home / "constraints.txt"
    pins = re.findall(r"(?m)^[a-z0-9-]+(?:\[[^\]]*\])?==[^ ;\\]+", (ROOT / "requirements.lock").read_text())
    constraints.write_text("\n".join(re.sub(r"\[[^\]]*\]", "", pin) for pin in pins))
    python = home / "env/bin/python"
    run(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, "-c", constraints, what, cwd=home)
    return home / "env/bin/planner"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def planner(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("all"), f"{wheel}[all]")


def contents(wheel: Path) -> dict[str, str]:
    """Return file -> SHA-256 of a wheel."""
    with zipfile.ZipFile(wheel) as files:
        return {name: hashlib.sha256(files.read(name)).hexdigest() for name in files.namelist()}


def test_the_sdist_makes_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as files:
        files.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("consumer_planner-*")
    assert contents(build(unpacked, "wheel", tmp_path / "again")) == contents(wheel)
    assert not {"tests", "scripts"} & {path.name for path in unpacked.iterdir()}


def test_the_wheel_names_the_plugin_that_airflow_loads(wheel: Path) -> None:
    """Red when runs have no notes in an Airflow that has the package: nothing else would show it."""
    with zipfile.ZipFile(wheel) as files:
        (name,) = [name for name in files.namelist() if name.endswith(".dist-info/entry_points.txt")]
        groups = configparser.ConfigParser()
        groups.read_string(files.read(name).decode())
        module, _, plugin = groups["airflow.plugins"]["consumer_planner"].partition(":")
        code = files.read(f"{module.replace('.', '/')}.py").decode()
    assert f"class {plugin}(AirflowPlugin)" in code


@pytest.mark.parametrize("recording", RECORDINGS)
def test_the_readmes_path_works_from_the_wheel_in_an_empty_environment(
    planner: Path, tmp_path: Path, recording: str
) -> None:
    policy, capture = RECORDINGS[recording], ROOT / "examples/captures" / recording
    run(planner, "snapshot", "--policy", policy, "--capture", capture, "-o", "snap.json", cwd=tmp_path)
    assert "consumers" in run(planner, "simulate", "snap.json", cwd=tmp_path)
    decided = run(planner, "plan", "snap.json", "--policy", policy, "--at", "snapshot", "-o", "plan.yaml", cwd=tmp_path)
    assert re.search(r"Scale from \d+ to \d+", decided), decided
    assert "Step 1" in run(planner, "explain", "plan.yaml", cwd=tmp_path)
    run(planner, "report", "plan.yaml", "-o", "report.html", cwd=tmp_path)
    assert "<svg" in (tmp_path / "report.html").read_text()
    run(planner, "doctor", "--capture", capture, cwd=tmp_path, codes=(0, 1))


def test_the_sdist_alone_decides_and_names_the_extra_that_a_page_needs(sdist: Path, tmp_path: Path) -> None:
    planner = install(tmp_path, str(sdist))
    policy, capture = RECORDINGS["two-brokers-day"], ROOT / "examples/captures/two-brokers-day"
    run(planner, "snapshot", "--policy", policy, "--capture", capture, "-o", "snap.json", cwd=tmp_path)
    run(planner, "plan", "snap.json", "--policy", policy, "--at", "snapshot", "-o", "plan.yaml", cwd=tmp_path)
    assert "[report]" in run(planner, "report", "plan.yaml", "-o", "page.html", cwd=tmp_path, codes=(2,))


REPLAY = "consumer_planner_replay"
DAG_FILE = """from consumer_planner_dags import consumer_planner, consumer_planner_apply  # Airflow
from consumer_planner_dags import consumer_planner_approval, consumer_planner_migration, consumer_planner_replay
"""
"""What docs/install-airflow.md has a user write; Airflow itself looks for its own name and for dag in the file."""


def words_of(page: str, command: str) -> list[str]:
    """Return the words of the one command of a page that begins like this, without these."""
    (line,) = re.findall(rf"(?m)^ *\$ {re.escape(command)} (.+)$", page)
    return shlex.split(line)


def test_a_stock_airflow_runs_the_dag_by_one_import_line(sdist: Path, tmp_path: Path) -> None:
    """Red when DAGs or Spark apps are not in the wheel, or need the checkout, or a command of the page does not do."""
    page = (ROOT / "docs/install-airflow.md").read_text()
    with tarfile.open(sdist) as files:
        files.extractall(tmp_path / "clone", filter="data")
    (clone,) = (tmp_path / "clone").iterdir()
    run(sys.executable, "-m", "pip", "wheel", *words_of(page, "pip wheel"), cwd=clone)
    (built,) = words_of(page, "pip install")
    tools = install(tmp_path, str(clone / built)).parent
    for name in ("dags", "policies"):
        (tmp_path / name).mkdir()
    (tmp_path / "dags/planner.py").write_text(DAG_FILE)
    shutil.copy(RECORDINGS["two-brokers-day"], tmp_path / "policies")
    conf = {
        "policies": str(tmp_path / "policies"),
        "data": str(tmp_path / "data"),
        "recording": str(ROOT / "examples/captures/two-brokers-day"),
    }
    env = {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[*]"}),
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # a short life: half of the processor's time
    }
    run(tools / "airflow", "db", "migrate", cwd=tmp_path, **env)
    folders = ("--policies", conf["policies"], "--data", conf["data"], "--spark-seconds", "1500")
    checked = run(tools / "planner", "airflow", "check", *folders, cwd=tmp_path, codes=(1,), **env)
    assert re.findall(r"(?m)^not ok +(\w+)", checked) == ["brokers"], "a recording's brokers are gone; all else is well"
    said = run(tools / "airflow", "dags", "test", REPLAY, "--conf", json.dumps(conf), cwd=tmp_path, **env)
    assert "1 policy: 1 to scale, 0 to hold, 0 without a decision." in said, said[-3_000:]
    assert len(list((tmp_path / "data").rglob("plan.yaml"))) == 1
    lines = (*DAG_FILE.splitlines(), f"airflow dags test {REPLAY} --conf")
    assert all(line in page for line in lines), "the page says what was run"
