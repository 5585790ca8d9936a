"""What people and machines read: forms, files, examples, completion, and wrong input by its name."""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from planner.cli.examples import EXAMPLES
from planner.cli.main import app
from planner.cli.policy_reading import spelt
from tests.sample_builders import POLICY
from tests.unit.cli.test_cli import planner, refused

REQUEST = {"system": "kafka", "strategy": "range", "partitions": {"t": 1}, "members": [{"id": "c", "topics": ["t"]}]}


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    path = tmp_path / "request.json"
    path.write_text(json.dumps(REQUEST))
    return path


def test_the_fixed_answer_is_the_same_in_every_form(request_file: Path, tmp_path: Path) -> None:
    """Red when the contract's JSON gets a header, or the forms differ."""
    bare = planner("allocate", request_file, "-o", "json")
    assert bare.stdout == planner("allocate", request_file, "--format", "json").stdout
    assert set(json.loads(bare.stdout)) >= {"assignments"}
    assert "apiVersion" not in bare.stdout
    assert yaml.safe_load(planner("allocate", request_file, "--format", "yaml").stdout) == json.loads(bare.stdout)
    assert planner("allocate", request_file, "-o", tmp_path / "answer.json").stdout == ""
    assert (tmp_path / "answer.json").read_text() == bare.stdout


def test_a_form_that_is_not_known_is_refused(request_file: Path) -> None:
    assert planner("allocate", request_file, "--format", "xml").returncode == 2
    refused(planner("allocate", request_file, "-o", "xml"), 2, "expected text, json, yaml")


def test_no_file_is_left_after_an_error(tmp_path: Path) -> None:
    refused(planner("allocate", tmp_path / "absent.json", "-o", tmp_path / "answer.json"), 2, "cannot be read")
    assert not (tmp_path / "answer.json").exists()


def test_planner_alone_prints_its_help() -> None:
    for words in ((), ("migrate",)):
        found = planner(*words)
        assert (found.returncode, found.stderr) == (0, "")
        # Typer names the program by the process, which is pytest's here.
        assert f"planner {' '.join((*words, '[OPTIONS]'))} COMMAND" in found.stdout


def test_a_command_that_is_nearly_right_is_named() -> None:
    found = planner("snapshto")
    assert found.returncode == 2
    assert "Did you mean 'snapshot'?" in found.stderr


def test_every_command_has_two_examples_in_its_help() -> None:
    own = {info.name for info in app.registered_commands if not info.hidden}
    assert own - {"advise", "init"} <= set(EXAMPLES)
    for command, count in (("advise", 3), ("init", 2)):  # theirs stand above the options
        assert planner(command, "--help").stdout.count(f" planner {command} -") == count
    for command, examples in EXAMPLES.items():
        text = " ".join(planner(*command.split(), "--help").stdout.split())
        for example in examples:
            assert example.startswith(f"planner {command}")
            assert " ".join(example.split()) in text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("maxReplicas", "maxReplica"), "field spec.maxReplica is not known: did you mean maxReplicas?"),
        (("nameServers", "nameserver"), "field spec.source.nameserver is not known: did you mean nameServers?"),
    ],
)
def test_a_misspelt_field_is_named_with_the_right_one(tmp_path: Path, wrong: tuple[str, str], said: str) -> None:
    path = tmp_path / "policy.yaml"
    assert wrong[0] in POLICY
    path.write_text(POLICY.replace(*wrong))
    found = planner("snapshot", "-p", path, "-o", tmp_path / "s.json")
    refused(found, 2, said)
    assert "more like this" not in found.stderr


def test_a_missing_port_is_named() -> None:
    refused(
        planner("doctor", "--all", "-n", "127.0.0.1"),
        2,
        "is not host:port: name servers listen on 9876 (127.0.0.1:9876)",
    )
    refused(
        planner("doctor", "--all", "--kafka", "127.0.0.1"),
        2,
        "it has no port; brokers mostly listen on 9092 (127.0.0.1:9092)",
    )


@contextmanager
def listener(answer: bytes) -> Iterator[str]:
    """Give the address of a server that answers every first frame with these bytes, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connected, _ = server.accept()
                except OSError:
                    return
                with connected:
                    connected.recv(4096)
                    connected.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def kafka_answer(*keys: int) -> bytes:
    """Return an answer to ApiVersions 0 with these requests."""
    body = struct.pack(">ihi", 7_777, 0, len(keys)) + b"".join(struct.pack(">hhh", key, 0, 1) for key in keys)
    return struct.pack(">i", len(body)) + body


def test_an_address_of_the_other_system_is_named() -> None:
    """Red when a Kafka address given as name server is only out of reach; the live check is by hand."""
    with listener(kafka_answer(3, 18)) as address:
        refused(planner("doctor", "--all", "-n", address), 2, f"{address} is a Kafka broker")
    header = json.dumps({"code": 0, "opaque": 7_777, "flag": 1}).encode()
    with listener(struct.pack(">ii", 4 + len(header), len(header)) + header) as address:
        refused(planner("doctor", "--all", "--kafka", address), 2, f"{address} is a RocketMQ server")
    with listener(kafka_answer(18, 60)) as address:
        refused(planner("doctor", "--all", "--kafka", address), 2, "controller port")


@pytest.mark.parametrize("word", ["--help", "-"])
def test_a_full_standard_output_is_one_sentence(word: str) -> None:
    """Red when Python's own trace or its exit code 120 reaches the user."""
    command = [sys.executable, "-m", "planner.cli.main", "allocate", word]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command, input=json.dumps(REQUEST), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 3
    assert ended.stderr.splitlines() == [
        "planner: standard output cannot be written (No space left on device): free some space, then run again"
    ]


def test_a_reader_that_went_away_is_no_fault() -> None:
    """Red when a table into ``head`` ends with rich's own exit code 1, or with a trace."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        ended = subprocess.run(
            [sys.executable, "-m", "planner.cli.main", "allocate", "--format", "text", "-"],
            input=json.dumps(REQUEST),
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("typed", ["k8s://shop/orders", "k8s://shop", "policy.yaml", "/etc/policies/k8s:/one.yaml"])
def test_a_policy_is_spelt_as_it_was_typed(typed: str) -> None:
    """Red when ``k8s://shop/orders`` comes back with one slash, as a path has it."""
    assert spelt(Path(typed)) == typed
