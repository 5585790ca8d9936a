"""A URI of a store in the place of a file: refused in one sentence, and no folder of its name is made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli.main import refuse_stores
from planner.errors import BadInputError
from planner.storage.files import write_atomically
from spark_apps.common import arguments

URI = "s3://bucket/planner"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["plan", URI], "the argument"),
        (["plan", "snap.json", "--data", URI], "--data"),
        (["plan", "snap.json", f"--data={URI}"], "--data"),
        (["snapshot", "-o", "hdfs:///planner/snap.json"], "-o"),
        (["doctor", "--capture", "file:///captures/day"], "--capture"),
        (["run", "--data", "s3:/bucket/planner"], "--data"),
    ],
)
def test_a_store_is_refused_by_the_option_that_names_it(words: list[str], name: str) -> None:
    with pytest.raises(BadInputError, match=f"^{name} is .*:/.*: only files and folders of this machine"):
        refuse_stores(words)


def test_addresses_of_servers_are_taken() -> None:
    refuse_stores(["history", "--prometheus", "https://prometheus:9090/prefix", "--all", "--match", "job=s3"])
    refuse_stores(["advise", "--kafka", "kafka:9092", "-n", "10.0.0.5:9876", "--data", "./s3:/x"])


def test_the_command_ends_with_one_sentence_and_makes_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "planner.cli.main", "plan", "snap.json", "-p", "p.yaml", "-o", f"{URI}/plan.yaml"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"planner: -o is {URI}/plan.yaml: only files and folders of this machine")
    assert list(tmp_path.iterdir()) == []


def test_the_controller_takes_no_store_for_its_data_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "planner.controller", "--all-namespaces"]
    env = {**os.environ, "PLANNER_DATA": URI}
    ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 2
    assert ended.stderr.startswith("planner-controller: --data is s3:/bucket/planner: only a path works here")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("uri", [URI, "https://host/plan.yaml"])
def test_no_file_is_written_to_a_path_that_was_made_of_a_uri(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInputError, match="was made of a URI"):
        write_atomically(Path(uri), "content")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--data", "--policies"])
def test_spark_apps_take_folders_alone(option: str) -> None:
    words = {"--data": "/data", "--policies": "/policies", "--at": "2026-11-21T10:00:00Z", option: URI}
    with pytest.raises(BadInputError, match=f"^{option} is {URI}: only a path works here"):
        arguments.run_parser("a test").parse_args([word for pair in words.items() for word in pair])
