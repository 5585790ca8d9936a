"""``planner doctor`` without a cluster: what options go together, recorded samples, what is printed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from planner.cli import doctor_reading
from planner.documents.data import SAMPLE
from planner.documents.diagnosis import DOCTOR_REPORT
from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import OutOfReachError, PlannerError, UnknownNameError
from planner.model.deployments import Deployment
from planner.model.samples import GroupSample
from planner.sources import kubernetes
from planner.sources.capture import write_capture
from planner.sources.live import Installation
from planner.sources.survey import OpenInstallation
from tests.sample_builders import POLICY, deployment
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
        (("-n", "a:1", "--group", "g", "--deployment", "shop/d", "--namespace", "x"), "contradict each other"),
        (("-n", "a:1", "--group", "g", "--deployment", "shop/"), "expected NAMESPACE/NAME"),
        (("--capture", "capture", "--group", "nobody"), "group nobody is not in these samples"),
        (("--sample", "none.json"), "does not exist"),
    ],
)
def test_options_that_do_not_go_together_are_refused(folder: Path, options: tuple[str, ...], said: str) -> None:
    refused(planner("doctor", *options, cwd=folder), 2, said)


def test_a_recording_is_told_like_a_live_cluster(folder: Path) -> None:
    found = planner("doctor", "--capture", "capture", cwd=folder)
    assert found.returncode == 1
    assert found.stdout.startswith("2 groups, watched for 30 s: 1 with errors, 1 with notices.")
    assert "2 of 2 members also run other groups: torn  [shared-client]" in found.stdout
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
    def opened(*_: object, **__: object) -> Iterator[OpenInstallation]:
        yield OpenInstallation(("shop",), lambda _, at: iter([("shop", replace(next(looks), at=at))]), problems)

    monkeypatch.setattr(doctor_reading, "open_rocketmq", opened)


def unread(found: Found) -> list[tuple[str, str]]:
    return [(one["group"], one["reason"]) for one in json.loads(found.stdout)["body"]["unread"]]


@pytest.mark.slow
def test_brokers_that_do_not_list_their_groups_make_the_round_a_partial_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the others have is told, and exit code 3 says that groups may be missing."""
    grounded(monkeypatch, ("broker 2 is silent",))
    found = planner("doctor", "--all", "-n", "a:1", "--watch", "0", "-o", "json")
    assert (found.returncode, unread(found)) == (3, [("*", "broker 2 is silent")])
    text = planner("doctor", "--all", "-n", "a:1", "--watch", "0").stdout
    assert "Not read:\n  broker 2 is silent\n" in text


GONE = OutOfReachError("nobody answers")


def policy_seen(monkeypatch: pytest.MonkeyPatch, *looks: GroupSample | OutOfReachError) -> None:
    """Let the looks at a policy's group come to this, one after the other."""

    def seen(place: Installation, *_: object) -> Iterator[tuple[ConsumerScalingPolicy, GroupSample | OutOfReachError]]:
        return ((place.policies[0], look) for look in looks)

    monkeypatch.setattr(doctor_reading, "watch_installation", seen)


def test_a_policys_group_that_fails_at_last_is_told_as_older(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy_seen(monkeypatch, *healthy().samples, GONE)
    found = planner("doctor", "--policy", "policy.yaml", "-o", "json", cwd=folder)
    reason = "the last sample failed, what follows is older: nobody answers"
    assert (found.returncode, unread(found)) == (3, [("shop", reason)])


def test_a_policys_group_that_fails_in_between_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *first, last = healthy().samples
    policy_seen(monkeypatch, *first, GONE, last)
    assert planner("doctor", "--policy", "policy.yaml", cwd=folder).returncode == 0


def test_a_policys_group_that_fails_at_first_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy_seen(monkeypatch, GONE, *healthy().samples)
    refused(planner("doctor", "--policy", "policy.yaml", cwd=folder), 3, "nobody answers")


class Api:
    """Stands for an API server that comes to this, one read after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *reads: Deployment | PlannerError) -> None:
        self.reads = list(reads)
        monkeypatch.setattr(kubernetes.KubernetesApi, "connect", lambda *_: nullcontext())
        monkeypatch.setattr(kubernetes, "read_named", self.read)

    def read(self, *_: object) -> Deployment:
        said = self.reads.pop(0)
        if isinstance(said, PlannerError):
            raise said
        return said


SERVED = ("--deployment", "shop/shop-consumer", "-o", "json")
AWAY = OutOfReachError("no answer within 10 s")


@pytest.mark.parametrize("before", [deployment(["10.0.0.1"]), AWAY])
@pytest.mark.parametrize("way", [("--policy", "policy.yaml"), ("-n", "a:1", "--group", "shop", "--watch", "0")])
def test_an_api_server_that_does_not_answer_costs_no_round(
    folder: Path, monkeypatch: pytest.MonkeyPatch, way: tuple[str, ...], before: Deployment | PlannerError
) -> None:
    policy_seen(monkeypatch, *healthy().samples)
    grounded(monkeypatch)
    Api(monkeypatch, before, AWAY)
    found = planner("doctor", *way, *SERVED, cwd=folder)
    assert (found.returncode, unread(found)) == (
        3,
        [("shop", "Deployment shop/shop-consumer was not read: no answer within 10 s")],
    )
    assert [one["group"] for one in json.loads(found.stdout)["body"]["groups"]] == ["shop"]


def test_an_api_server_that_is_back_after_the_watch_is_no_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy_seen(monkeypatch, *healthy().samples)
    clients = [member.identity for member in healthy().newest.members]
    Api(monkeypatch, AWAY, deployment([client.split("@")[0] for client in clients]))
    found = planner("doctor", "--policy", "policy.yaml", *SERVED, cwd=folder)
    assert (found.returncode, unread(found)) == (0, [])


def test_a_deployment_that_is_not_there_is_said_before_the_watch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy_seen(monkeypatch)
    Api(monkeypatch, UnknownNameError("shop has no Deployment shop-consumer"))
    refused(planner("doctor", "--policy", "policy.yaml", *SERVED, cwd=folder), 2, "has no Deployment")
