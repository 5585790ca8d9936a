"""The checks of an Airflow installation, as far as they need no Airflow: folders, versions, Java, never stopping."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from planner.deployments.rights import READING
from planner.errors import OutOfReachError
from planner.orchestration.checks import CheckResult, CheckSettings, installation, packages, run_checks, storage
from planner.orchestration.checks.inside import _reason
from planner.orchestration.checks.installation import check_approvers
from planner.orchestration.checks.java import check_java_result
from planner.orchestration.checks.packages import check_airflow, check_packages
from planner.orchestration.checks.storage import check_storage
from tests.sample_builders import POLICY

ROOT = Path(__file__).parents[3]


def settings(data: object = "/data") -> CheckSettings:
    return CheckSettings("/policies", str(data), None, 60.0)


def test_a_check_that_fails_keeps_no_other_from_being_run() -> None:
    """Red when an error of ours, or one that nobody knows, ends the command."""

    def known(_: CheckSettings) -> Iterator[tuple[bool, str]]:
        raise OutOfReachError("no answer: start it")

    def unknown(_: CheckSettings) -> Iterator[tuple[bool, str]]:
        yield True, "half"
        raise ValueError("what")

    checks = {"known": known, "unknown": unknown, "last": lambda _: [(True, "well")]}
    found = list(run_checks(settings(), checks))
    assert found[:2] == [CheckResult("known", False, "no answer: start it"), CheckResult("unknown", True, "half")]
    assert found[2].sentence.startswith("the check ended with ValueError: what")
    assert found[3] == CheckResult("last", True, "well")


def test_a_folder_is_tried_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    assert [is_good for is_good, _ in check_storage(settings(tmp_path / "data"))] == [True, True, True]
    assert list((tmp_path / "data").iterdir()) == []
    assert all(is_good for is_good, _ in check_storage(settings(tmp_path / "new" / "data")))
    assert not (tmp_path / "new").exists()


def test_a_folder_that_takes_nothing_or_is_nearly_full_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    (problem, _, _) = check_storage(settings(tmp_path / "file" / "data"))
    assert not problem[0]
    assert "Not a directory" in problem[1]
    free = shutil.disk_usage(tmp_path).free
    monkeypatch.setattr(storage, "LEAST_FREE", free * 2)
    is_good, sentence = next(iter(check_storage(settings(tmp_path))))
    assert not is_good
    assert sentence.endswith("make room")


def test_what_the_setting_of_the_history_is_is_said_and_a_folder_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red when a history that nobody can write counts as fine, or a URI as tried."""
    (tmp_path / "file").write_text("no folder")
    for location, is_good, words in (
        ("", True, f"the lag history lies in {tmp_path}/data/history"),
        (str(tmp_path / "history"), True, "a file was written and read back"),
        (f"file://{tmp_path}/history", True, "a file was written and read back"),
        (str(tmp_path / "file" / "history"), False, "cannot be used"),
        ("history", False, "expected an absolute path or a URI"),
        ("s3a://key:secret@bucket/history", True, "Hadoop's file system for s3a://"),
    ):
        monkeypatch.setenv("CONSUMER_PLANNER_HISTORY", location)
        *_, (found, sentence) = check_storage(settings(tmp_path / "data"))
        assert (found, words in sentence) == (is_good, True), sentence
        assert "secret" not in sentence
    assert not (tmp_path / "history").exists()


APPROVAL = "  approval: {approvers: [ana, '7']}\n"


@pytest.mark.parametrize(
    ("manager", "setup", "is_good", "words"),
    [
        ("FabAuthManager", {}, False, "ana cannot answer, as that is no id of FabAuthManager, whose ids are numbers"),
        ("SimpleAuthManager", {"users": ["ben"]}, False, "nobody can answer"),
        ("SimpleAuthManager", {"users": ["ana", "7"]}, True, "each may be an id"),
        ("SimpleAuthManager", {"users": ["ana", "7"], "all_admins": True}, False, "everybody may answer"),
        ("KeycloakAuthManager", {}, True, "was not tried"),
    ],
)
def test_approvers_that_cannot_answer_under_the_auth_manager_are_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    manager: str,
    setup: dict[str, object],
    is_good: bool,
    words: str,
) -> None:
    (tmp_path / "shop.yaml").write_text(POLICY + APPROVAL, encoding="utf-8")
    answer = {"auth_manager": f"airflow.{manager}", "all_admins": False, "users": [], **setup}
    monkeypatch.setattr(installation, "_installation", lambda: answer)
    ((found, sentence),) = check_approvers(CheckSettings(str(tmp_path), "/data", None, 60.0))
    assert (found, words in sentence) == (is_good, True), sentence


def test_a_uri_as_data_folder_is_refused() -> None:
    (result,) = run_checks(settings("s3://bucket/data"), {"storage": check_storage})
    assert not result.is_good
    assert "mount the store and give its path" in result.sentence


def test_what_is_installed_here_fits() -> None:
    assert [is_good for is_good, _ in (*check_airflow(settings()), *check_packages(settings()))] == [True, True]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"pandas": "3.0.1"}, "package pandas: found 3.0.1, expected <3,>=2.2"),
        ({"pyspark-client": "4.1.0"}, "found pyspark 4.2.0 and pyspark-client 4.1.0, which share one folder"),
        ({"pyarrow": None}, "package pyarrow: found none, expected >=18"),
    ],
)
def test_a_version_that_does_not_fit_is_named(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, str | None], said: str
) -> None:
    installed = packages._installed
    monkeypatch.setattr(packages, "_installed", lambda name: found.get(name, installed(name)))
    results = list(check_packages(settings()))
    assert not any(is_good for is_good, _ in results)
    assert any(said in sentence for _, sentence in results), results


@pytest.mark.parametrize(("version", "said"), [("3.2.1", "found Airflow 3.2.1, expected"), (None, "is not installed")])
def test_another_airflow_is_named(monkeypatch: pytest.MonkeyPatch, version: str | None, said: str) -> None:
    monkeypatch.setattr(packages, "_installed", lambda _: version)
    ((is_good, sentence),) = check_airflow(settings())
    assert not is_good
    assert said in sentence


def test_a_java_that_is_missing_from_the_path_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    (result,) = run_checks(settings(), {"java": check_java_result})
    assert result.sentence.startswith("Spark needs Java 17 or newer, found none at java: install it")


def test_an_old_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (result,) = run_checks(settings(), {"java": check_java_result})
    assert "found version 11" in result.sentence


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("Cannot execute: x.\nplanner: disk full: make room\n\tat java.lang.Thread.run", "disk full: make room"),
        (
            "x\njava.io.IOException: Cannot run program\n\tat java.lang.Thread",
            "java.io.IOException: Cannot run program",
        ),
        ("JAVA_HOME is not set", "JAVA_HOME is not set"),
    ],
)
def test_why_a_job_failed_is_the_line_that_says_it(output: str, reason: str) -> None:
    assert _reason(output) == reason


def test_the_rights_that_are_asked_for_are_those_of_the_manifest() -> None:
    """Red when the reader's role grants something else than the check asks for."""
    role = next(iter(yaml.safe_load_all((ROOT / "k8s/rbac/reader-role.yaml").read_text())))
    granted = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert set(READING) == granted
