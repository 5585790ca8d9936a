"""``planner doctor`` without a cluster: what options go together, recorded samples, what is printed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from planner.cli import doctor_reading
from planner.documents.data import SAMPLE
from planner.documents.diagnosis import DOCTOR_REPORT
from planner.model.samples import GroupSample
from planner.sources.capture import write_capture
from planner.sources.survey import Ground
from tests.sample_builders import POLICY
from tests.unit.cli.test_cli import Found, planner, refused
from tests.unit.diagnosis.patients import each, healthy
from tests.unit.diagnosis.test_ownership import mixed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("doctor")
    (made / "policy.yaml").write_text(POLICY)
    torn = each(mixed(), lambda sample: replace(sample, group="torn"))
    both = sorted((*healthy().samples, *torn.samples), key=lambda sample: sample.at)
    write_capture(made / "capture", both, 5.0, (), ())
    for number, sample in enumerate(torn.samples):
        (made / f"{number}.json").write_bytes(SAMPLE.dump(sample))
    return made


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "expected one of them"),
        (("-n", "a:1"), "either --all or --group"),
        (("-n", "a:1", "--all", "--group", "g"), "either --all or --group"),
        (("-n", "a:1", "--kafka", "b:1", "--all"), "--name-server and --kafka"),
        (("--policy", "policy.yaml", "--group", "g"), "--policy names its group"),
        (("-n", "a:1", "--all", "--deployment", "d"), "belongs to one group"),
        (("-n", "a:1", "--group", "g", "--kubeconfig", "k"), "--kubeconfig needs --deployment"),
        (("--capture", "capture", "--group", "nobody"), "group nobody is not in these samples"),
        (("--sample", "none.json"), "does not exist"),
    ],
)
def test_options_that_do_not_go_together_are_refused(folder: Path, options: tuple[str, ...], said: str) -> None:
    refused(planner("doctor", *options, cwd=folder), 2, said)


def test_a_recording_is_told_like_a_live_cluster(folder: Path) -> None:
    found = planner("doctor", "--capture", "capture", cwd=folder)
    assert found.returncode == 1
    assert found.stdout.startswith("2 groups, watched for 30 s: 1 with errors, 1 healthy.")
    assert "torn  Split brain: members run 2 different allocation strategies  [mixed-strategies]" in found.stdout
    for label in ("seen", "costs", "do"):
        assert f"        {label}" in found.stdout
    assert "Not checked:" in found.stdout


def test_one_healthy_group_of_a_recording(folder: Path) -> None:
    found = planner("doctor", "--capture", "capture", "--group", "shop", cwd=folder)
    assert (found.returncode, found.stderr) == (0, "")
    assert "1 group, watched for 30 s: 1 healthy." in found.stdout


def test_samples_from_files_in_any_order(folder: Path) -> None:
    names = [word for number in (3, 0, 6, 1) for word in ("--sample", f"{number}.json")]
    found = planner("doctor", *names, "-o", "json", cwd=folder)
    assert found.returncode == 1
    report = DOCTOR_REPORT.parse(found.stdout, "the answer")
    assert [(one.group, one.looks, one.watched_s) for one in report.groups] == [("torn", 4, 30.0)]
    assert json.loads(found.stdout)["kind"] == "DoctorReport"


def test_the_text_is_bounded_and_says_how_to_see_the_rest(folder: Path) -> None:
    crowd = each(mixed(), lambda sample: replace(sample, dead_letters=2))
    write_capture(folder / "many", crowd.samples, 5.0, (), ())
    found = planner("doctor", "--capture", "many", "--top", "1", cwd=folder)
    assert "1 more findings (dead-letters 1): --top 2" in found.stdout


def test_the_page_is_written_beside_the_text(folder: Path) -> None:
    found = planner("doctor", "--capture", "capture", "--html", "doctor.html", cwd=folder)
    assert "Page written to doctor.html" in found.stdout
    assert (folder / "doctor.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def healthy_looks() -> Iterator[GroupSample]:
    """Yield a healthy group's looks, one after the other, and the last one again and again."""
    yield from healthy().samples
    while True:
        yield healthy().samples[-1]


def grounded(monkeypatch: pytest.MonkeyPatch, problems: tuple[str, ...] = ()) -> None:
    """Let every look at a RocketMQ installation find one healthy group."""
    looks = healthy_looks()

    @contextmanager
    def opened(*_: object, **__: object) -> Iterator[Ground]:
        yield Ground(("shop",), lambda _, at: iter([("shop", replace(next(looks), at=at))]), problems)

    monkeypatch.setattr(doctor_reading, "open_rocketmq", opened)


def unread(found: Found) -> list[tuple[str, str]]:
    return [(one["group"], one["reason"]) for one in json.loads(found.stdout)["body"]["unread"]]


def test_brokers_that_do_not_list_their_groups_make_the_round_a_partial_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the others have is told, and exit code 3 says that groups may be missing."""
    grounded(monkeypatch, ("broker 2 is silent",))
    found = planner("doctor", "--all", "-n", "a:1", "--watch", "0", "-o", "json")
    assert (found.returncode, unread(found)) == (3, [("*", "broker 2 is silent")])
    text = planner("doctor", "--all", "-n", "a:1", "--watch", "0").stdout
    assert "Not read:\n  broker 2 is silent\n" in text
