"""The stages on files, without Spark and Airflow."""

import os
import re
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from planner import pipeline
from planner.documents.data import METRIC_HISTORY, OUTCOMES, SNAPSHOT
from planner.documents.plan import DECISION, PLAN, document_name
from planner.documents.policy import ConsumerScalingPolicy, parse_policy
from planner.documents.policy_folder import read_policies
from planner.errors import BadInputError, DocumentError, IncompleteError, OutOfReachError, PlannerError
from planner.model.points import GroupPoint, MetricHistory
from planner.model.samples import GroupSample
from planner.policies.fleet import read_origin, read_problems
from planner.policies.notices import NoticeRules
from planner.runs import cases, metrics_past, observe, pages
from planner.runs.cases import decided_cases
from planner.runs.conclude import ages_at_decision_s, conclude_run, count_note, notices_after
from planner.runs.metrics_past import land_pasts, last_read, metrics_read_mark
from planner.runs.observe import observe_capture, observe_live
from planner.runs.pages import write_pages
from planner.runs.plan import plan_policy, results_of
from planner.runs.policy_stages import read_decision
from planner.sources.capture import write_capture
from planner.sources.live import Installation, Pace
from planner.sources.prometheus import AnswerError
from planner.storage.layout import RunFolder, local_folder, sample_path
from planner.storage.run import Decided, Run, keep_results, read_results
from planner.storage.track_records import land_records
from planner.verification.judge import judge
from planner.verification.observed_change import Between, ObservedChange
from tests.sample_builders import POLICY, START, steady, watch

LATER = START + timedelta(minutes=5)


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "shop.yaml").write_text(POLICY, encoding="utf-8")
    return folder


def decided(policies: Path, data: Path, arriving: int, name: str = "shop") -> Run:
    """Return a run whose decide stage is done for one policy; ``arriving`` messages come in a queue and sample."""
    (policy,) = (policy for policy in read_policies(policies) if policy.metadata.name == name)
    samples = watch(30, steady(arriving, arriving))
    at = samples[-1].at
    run = Run(data, policies, samples[0].at, at, 5.0)
    snapshot = pipeline.take_snapshot(samples, 5.0, policy, at)
    outcomes = pipeline.simulate(snapshot, policy)
    record = pipeline.decide(snapshot, outcomes, policy)
    files = run.folder.policy("shop")
    files.folder.mkdir(parents=True, exist_ok=True)
    run.folder.snapshots.mkdir(exist_ok=True)
    run.folder.snapshot("shop").write_bytes(SNAPSHOT.dump(snapshot))
    files.outcomes.write_bytes(OUTCOMES.dump(outcomes))
    files.decision.write_text(DECISION.dump(record, document_name(record)), encoding="utf-8")
    return run


def planned(run: Run) -> list[Decided]:
    """Return what came of every policy once the plan stage is done."""
    return [plan_policy(run, policy) for policy in read_policies(run.policies)]


def test_a_decision_to_scale_leaves_a_plan_with_its_snapshot(policies: Path, tmp_path: Path) -> None:
    run = decided(policies, tmp_path / "data", arriving=70)
    files = run.folder.policy("shop")
    (line,) = planned(run)
    assert (line["policy"], line["from"], line["to"], line["plan"]) == ("shop", 3, 6, str(files.plan))
    assert line["reason"].startswith("Scale from 3 to 6 consumers")
    assert conclude_run(run, [line], {}) == "1 policy: 1 to scale, 0 to hold, 0 without a decision."
    (case,) = decided_cases(run)
    assert case.plan is not None
    assert files.plan.read_text(encoding="utf-8") == PLAN.text(
        PLAN.document(case.plan, f"shop-{run.until:%Y%m%d-%H%M%S}", "default")
    )
    assert files.snapshot.read_bytes() == run.folder.snapshot("shop").read_bytes()


def test_forecasts_that_missed_too_often_leave_the_plan_to_a_person_and_are_on_the_page(
    policies: Path, tmp_path: Path
) -> None:
    rule = "  approval: {mode: Auto, criteria: {mostMovedQueues: 99}}\n"
    (policies / "shop.yaml").write_text(POLICY + rule, encoding="utf-8")
    run = decided(policies, tmp_path / "data", arriving=70)
    planned(run)
    path = run.folder.policy("shop").plan
    assert "consumerplanner.dev/approve" in path.read_text(encoding="utf-8")
    (case,) = decided_cases(run)
    assert case.plan is not None
    assert case.track.forecasts == 0
    for hours in range(1, 6):
        missed = ObservedChange(moved_queues=Between.exactly(99))
        land_records(run.data, case.plan, judge(case.plan.forecast, missed, case.plan.made_at - timedelta(hours=hours)))
    planned(run)
    assert "consumerplanner.dev/approve" not in path.read_text(encoding="utf-8")
    assert write_pages(run, "all") == {}
    page = run.folder.policy("shop").report
    assert "moved queues was missed in 5 of 5 forecasts of group shop" in page.read_text(encoding="utf-8")


def test_a_plan_of_an_earlier_try_does_not_survive_a_hold(policies: Path, tmp_path: Path) -> None:
    run = decided(policies, tmp_path / "data", arriving=70)
    planned(run)
    assert run.folder.policy("shop").plan.exists()
    again = decided(policies, tmp_path / "data", arriving=50)
    assert again == run
    (line,) = planned(again)
    assert (line["from"], line["to"], line["plan"]) == (3, 3, None)
    assert not run.folder.policy("shop").plan.exists()


def test_pages_are_those_asked_for_and_an_earlier_ones_page_goes(policies: Path, tmp_path: Path) -> None:
    run = decided(policies, tmp_path / "data", arriving=70)
    page = run.folder.policy("shop").report
    planned(run)
    assert write_pages(run, "plans") == {}
    assert page.exists()
    assert write_pages(run, "none") == {}
    assert not page.exists()
    again = decided(policies, tmp_path / "data", arriving=50)
    planned(again)
    write_pages(run, "all")
    assert page.exists()
    assert write_pages(run, "plans") == {}
    assert not page.exists(), "a hold has no plan"


@pytest.mark.slow
def test_many_pages_are_written_side_by_side_and_one_that_fails_or_is_killed_stops_no_other(
    policies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red where pages come one after the other, or a process that is killed takes its neighbours' pages along."""
    for name in ("away", "b", "deadly"):
        (policies / f"{name}.yaml").write_text(POLICY.replace("shop", name), encoding="utf-8")
    run = decided(policies, tmp_path / "data", arriving=70, name="shop")
    for name in ("away", "b", "deadly"):
        shutil.copytree(run.folder.policy("shop").folder, run.folder.policy(name).folder)
    monkeypatch.setattr(pages, "FEW", 2)
    monkeypatch.setattr(pages, "processors", lambda: 2)
    monkeypatch.setattr(pages, "_why_no_page", page_or_death)
    reasons = write_pages(run, "all")
    assert sorted(reasons) == ["away", "deadly"]
    assert reasons["away"] == "its outcomes are away"
    assert "was killed: give the run more memory" in reasons["deadly"]
    writers = {run.folder.policy(name).report.read_text(encoding="utf-8") for name in ("b", "shop")}
    assert str(os.getpid()) not in writers, "none was written in this process"


def page_or_death(run: Run, policy: ConsumerScalingPolicy) -> str | None:
    """Write the process's id as a page; one page fails, and the process that writes another is killed."""
    name = policy.metadata.name
    if name == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "away":
        return "its outcomes are away"
    run.folder.policy(name).report.write_text(str(os.getpid()), encoding="utf-8")
    return None


def test_results_travel_in_the_runs_folder(policies: Path, tmp_path: Path) -> None:
    run = decided(policies, tmp_path / "data", arriving=50)
    with pytest.raises(BadInputError, match=r"results\.json does not exist: .* the stage plan"):
        read_results(run.folder)
    lines = planned(run)
    keep_results(run.folder, lines)
    assert read_results(run.folder) == lines


def test_the_age_at_decision_counts_from_the_groups_newest_sample(policies: Path, tmp_path: Path) -> None:
    """Red where it counts from the run's end: a sampler that stood still would look fresh."""
    run = decided(policies, tmp_path / "data", arriving=50)
    (policy,) = read_policies(policies)
    samples = watch(30, steady(50, 50))
    late = pipeline.take_snapshot(samples, 5.0, policy, run.until + timedelta(seconds=30))
    run.folder.snapshot("shop").write_bytes(SNAPSHOT.dump(late))
    os.utime(run.folder.policy("shop").decision, (0, late.at.timestamp() + 40))
    assert ages_at_decision_s(run) == {"shop": pytest.approx(70.0)}
    run.folder.snapshot("shop").unlink()
    assert ages_at_decision_s(run) == {}, "unknown is no age"


def test_a_policy_without_a_decision_is_passed_over(policies: Path, tmp_path: Path) -> None:
    run = Run(tmp_path, policies, START, LATER, 5.0)
    assert list(decided_cases(run)) == []


def test_a_run_travels_as_a_message(policies: Path, tmp_path: Path) -> None:
    run = Run(tmp_path, policies, START, LATER, 5.0)
    assert Run.of(run.message()) == run
    assert all(isinstance(value, str | float) for value in run.message().values())


def test_samples_of_both_ends_of_the_interval_land(policies: Path, tmp_path: Path) -> None:
    samples = watch(10)
    write_capture(tmp_path / "capture", samples, 5.0, (), ())
    since, until = samples[2].at, samples[6].at
    run = observe_capture(policies, tmp_path, tmp_path / "capture", since.isoformat(), until)
    assert run == Run(tmp_path, run.folder.policies, since, until, 5.0)
    landed = sorted((tmp_path / "samples").rglob("*.json"))
    assert landed == [sample_path(tmp_path, sample) for sample in samples[2:7]]


def recorded(policies: Path, folder: Path) -> Run:
    """Return the run over a recording of group shop."""
    write_capture(folder / "capture", watch(4), 5.0, (), ())
    return observe_capture(policies, folder, folder / "capture", START, LATER)


def test_a_group_whose_samples_cannot_be_kept_stops_nobody_and_fails_the_run(policies: Path, tmp_path: Path) -> None:
    name = "g" * 300
    (policies / "long.yaml").write_text(
        POLICY.replace("group: shop}", f"group: {name}}}")
        .replace("{name: shop}", "{name: long}")
        .replace("{name: shop-consumer}", "{name: long-consumer}")
    )
    samples = [replace(sample, group=group) for sample in watch(4) for group in ("shop", name)]
    write_capture(tmp_path / "capture", samples, 5.0, (), ())
    run = observe_capture(policies, tmp_path, tmp_path / "capture", START, LATER)
    assert "takes 300 bytes as a file name" in read_problems(run.folder)["long"]
    assert len(sorted((tmp_path / "samples").rglob("*.json"))) == 4


@pytest.mark.parametrize(
    "content", ["", '{"shop": ', "[]", '{"shop": 5}', "\xff", "[" * 100_000], ids=lambda text: text[:9]
)
def test_what_a_run_keeps_of_its_policies_is_read_typed(tmp_path: Path, content: str) -> None:
    run = RunFolder(tmp_path)
    for path in (run.problems, run.origin):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("latin-1"))
    with pytest.raises(DocumentError, match=r"is cut off or was edited, expected .*: start"):
        read_problems(run)
    with pytest.raises(DocumentError, match=r"is cut off or was edited, expected .*: start"):
        read_origin(run)


def test_a_group_that_was_not_recorded_stops_nobody_and_fails_the_run(policies: Path, tmp_path: Path) -> None:
    (policies / "bank.yaml").write_text(POLICY.replace("shop", "bank"), encoding="utf-8")
    run = recorded(policies, tmp_path)
    assert len(list((tmp_path / "samples").rglob("*.json"))) == 4
    with pytest.raises(IncompleteError, match=r"1 failed: bank: group bank is not in the recording .*/capture\.$"):
        conclude_run(run, [], {})


def test_a_misspelt_policy_and_twins_stop_nobody_and_each_is_named(policies: Path, tmp_path: Path) -> None:
    (policies / "typo.yaml").write_text(POLICY.replace("shop", "typo").replace("minReplicas", "minReplica"))
    for name in ("left", "right"):
        (policies / f"{name}.yaml").write_text(
            POLICY.replace("name: shop", f"name: {name}").replace("group: shop", "group: twin")
        )
    (policies / "snapshots.yaml").write_text(POLICY.replace("shop", "snapshots"))
    run = recorded(policies, tmp_path)
    assert [policy.metadata.name for policy in read_policies(run.policies)] == ["shop"]
    with pytest.raises(IncompleteError) as failed:
        conclude_run(run, [], {})
    for words in (
        "4 failed: ",
        f"left.yaml: policies {policies / 'left.yaml'} and {policies / 'right.yaml'} have the same group twin",
        "right.yaml: policies ",
        "snapshots.yaml: policy snapshots has a name that every run folder needs",
        f"typo.yaml: {policies / 'typo.yaml'}: field spec.minReplica is not known",
    ):
        assert words in str(failed.value)


def test_a_folder_in_which_nothing_can_be_served_is_refused_with_every_reason(policies: Path, tmp_path: Path) -> None:
    for path in (policies / "shop.yaml", policies / "typo.yaml"):
        path.write_text(POLICY.replace("minReplicas", path.stem), encoding="utf-8")
    with pytest.raises(BadInputError, match=r"field spec\.shop is not known.*field spec\.typo is not known"):
        recorded(policies, tmp_path)


def test_policies_are_read_once_a_run(policies: Path, tmp_path: Path) -> None:
    text = (policies / "shop.yaml").read_text(encoding="utf-8")
    run = recorded(policies, tmp_path)
    (policies / "shop.yaml").write_text("something else", encoding="utf-8")
    assert Run.of(run.message()).policies == run.folder.policies
    assert (run.policies / "shop.yaml").read_text(encoding="utf-8") == text


def test_a_broken_file_of_one_policy_keeps_no_other_from_its_plan_and_page(policies: Path, tmp_path: Path) -> None:
    run = decided(policies, tmp_path / "data", arriving=70)
    for name in ("broken", "unread"):
        (policies / f"{name}.yaml").write_text(POLICY.replace("shop", name), encoding="utf-8")
    broken = run.folder.policy("broken")
    broken.folder.mkdir()
    broken.decision.write_text("kind: [", encoding="utf-8")
    lines = {line["policy"]: line for line in planned(run)}
    without_page = write_pages(run, "all")
    assert lines["shop"]["plan"] == str(run.folder.policy("shop").plan)
    assert run.folder.policy("shop").report.exists()
    assert without_page.keys() == {"broken", "unread"} == {name for name in lines if lines[name]["to"] is None}
    with pytest.raises(IncompleteError) as failed:
        conclude_run(run, list(lines.values()), without_page)
    assert str(broken.decision) in str(failed.value)
    assert "3 policies: 1 to scale, 0 to hold, 2 without a decision. 2 failed: broken: " in str(failed.value)
    assert count_note(run, list(lines.values()), without_page) == "3 policies: 1 plan, 0 holds, 2 failed"


def test_a_defect_in_one_group_is_its_own_sentence(
    policies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = decided(policies, tmp_path / "data", arriving=70)
    monkeypatch.setattr(cases, "read_track", lambda *_: 1 // 0)
    (line,) = planned(run)
    assert line["to"] is None
    assert "stage plan failed on it with ZeroDivisionError: " in line["reason"]
    assert "Traceback" in caplog.text


def test_settings_that_cannot_be_fail_their_policy_alone(
    policies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (policies / "far.yaml").write_text(POLICY.replace("shop", "far"), encoding="utf-8")
    (sample,) = watch(1)

    def looks(place: Installation, _seconds: float, pace: Pace) -> Iterator[tuple[ConsumerScalingPolicy, GroupSample]]:
        pace.note(0.2)
        for policy in place.policies:
            if policy.metadata.name == "far":
                raise BadInputError("its kubeconfig is no such file")
            yield policy, sample

    monkeypatch.setattr(observe, "watch_installation", looks)
    run = observe_live(policies, tmp_path / "data", 0.0)
    with pytest.raises(
        IncompleteError, match=r"1 failed: far: its group was not read: its kubeconfig is no such file\."
    ):
        conclude_run(run, [], {})


def test_a_uri_where_a_folder_is_needed_is_refused() -> None:
    with pytest.raises(BadInputError, match="data is s3://bucket/planner: only a path"):
        local_folder("s3://bucket/planner", "data")
    assert local_folder("/var/lib/planner", "data") == Path("/var/lib/planner")


def test_counts_of_a_note_add_up_whatever_failed(policies: Path, tmp_path: Path) -> None:
    """A policy that has its plan and no page failed; so did a file that is no policy."""
    (policies / "typo.yaml").write_text("kind: [", encoding="utf-8")
    run = recorded(policies, tmp_path)
    lines: list[Decided] = [
        {"policy": name, "from": 3, "to": to, "hold": None, "reason": "", "plan": plan}
        for name, to, plan in (("a", 4, "a.yaml"), ("b", 4, "b.yaml"), ("c", 3, None), ("d", None, None))
    ]
    assert count_note(run, lines, {"b": "no page"}) == "5 policies: 1 plan, 1 hold, 3 failed"


def test_a_policy_whose_file_broke_is_one_without_a_decision(policies: Path, tmp_path: Path) -> None:
    rules = NoticeRules(3, timedelta(minutes=25))
    (policies / "typo.yaml").write_text("kind: [", encoding="utf-8")
    run = recorded(policies, tmp_path)
    rows = [("shop", 3), ("bank", 3)]
    lines: list[Decided] = [
        {"policy": name, "from": 3, "to": to, "hold": "RightAlready", "reason": "", "plan": None} for name, to in rows
    ]
    assert notices_after(replace(run, until=START - timedelta(hours=1)), lines, rules) == []
    (notice,) = notices_after(run, lines[:1], rules)
    assert notice.sentence.startswith("bank has had no decision for 1 h 5 min: its policy was not read. ")
    assert "typo.yaml" in notice.sentence


def test_a_group_that_was_not_read_is_noticed_with_the_reason_of_its_brokers(policies: Path, tmp_path: Path) -> None:
    """The stages after observe know no more than that it has no sample."""
    (policies / "bank.yaml").write_text(POLICY.replace("shop", "bank"), encoding="utf-8")
    run = recorded(policies, tmp_path)
    rules = NoticeRules(3, timedelta(minutes=25))
    line: Decided = {
        "policy": "bank",
        "from": None,
        "to": None,
        "hold": None,
        "reason": "bank has no sample.",
        "plan": None,
    }
    notices_after(replace(run, until=START - timedelta(hours=1)), [line], rules)
    (notice,) = notices_after(run, [line], rules)
    assert notice.sentence.startswith("bank has had no decision for 1 h 5 min: group bank is not in the recording ")


def test_a_live_run_watches_for_the_window_and_for_half_of_its_time_at_most(
    policies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched: list[float] = []

    def looks(place: Installation, seconds: float, _pace: Pace) -> Iterator[tuple[ConsumerScalingPolicy, GroupSample]]:
        watched.append(seconds)
        yield place.policies[0], watch(1)[0]

    monkeypatch.setattr(observe, "watch_installation", looks)
    for watch_s, longest_s in ((None, None), (None, 300.0), (None, 60.0), (7.0, 5.0)):
        observe_live(policies, tmp_path, watch_s, longest_s)
    assert watched == [120.0, 120.0, 60.0, 7.0]


@pytest.mark.parametrize("wrong", [None, "yesterday", "2026-11-21T10:00:00"])
def test_a_run_without_times_says_which_parameter_to_give(policies: Path, tmp_path: Path, wrong: str | None) -> None:
    with pytest.raises(BadInputError, match=r"parameter since: found .* expected a time with zone like 2026"):
        observe_capture(policies, tmp_path, tmp_path / "capture", wrong, LATER)


def test_where_no_group_is_read_each_policy_keeps_its_reason_to_the_end_of_the_run(
    policies: Path, tmp_path: Path
) -> None:
    """Two installations out of reach and a file that is no policy: the end of the run names all three."""
    (policies / "shop.yaml").write_text(POLICY.replace("9876", "1"), encoding="utf-8")
    (policies / "bank.yaml").write_text(POLICY.replace("shop", "bank").replace("9876", "2"), encoding="utf-8")
    (policies / "typo.yaml").write_text("kind: [", encoding="utf-8")
    with pytest.raises(OutOfReachError, match=r"bank: .*127\.0\.0\.1:2.*; shop: .*127\.0\.0\.1:1"):
        observe_live(policies, tmp_path / "tried-again", 600.0, can_retry=True)
    assert not (tmp_path / "tried-again").exists()

    run = observe_live(policies, tmp_path / "data", 600.0)
    for failure in (None, "stage history: disk full"):
        decided = results_of(run, failure)
        assert [(line["policy"], line["to"]) for line in decided] == [("bank", None), ("shop", None)]
        # What its status in a cluster says: the group's own reason, also where Spark failed.
        assert ["127.0.0.1:2" in decided[0]["reason"], "127.0.0.1:1" in decided[1]["reason"]] == [True, True]
        with pytest.raises(IncompleteError) as ended:
            conclude_run(run, decided, {})
        for name, reason in (("bank", "127.0.0.1:2"), ("shop", "127.0.0.1:1"), ("typo.yaml", "typo.yaml")):
            assert re.search(rf"{name}: [^;]*{re.escape(reason)}", str(ended.value)), ended.value


def test_results_of_an_earlier_try_are_not_those_of_a_run_whose_spark_failed(policies: Path, tmp_path: Path) -> None:
    run = decided(policies, tmp_path, arriving=70)
    planned(run)
    keep_results(run.folder, [])
    (line,) = results_of(run, "stage history: disk full: make room")
    assert line["reason"] == "No decision for policy shop: stage history: disk full: make room."
    assert not run.folder.policy("shop").plan.exists()
    assert not run.folder.policy("shop").decision.exists()


def test_a_plan_in_the_place_of_a_decision_is_refused(policies: Path, tmp_path: Path) -> None:
    run = decided(policies, tmp_path, arriving=70)
    planned(run)
    path = run.folder.policy("shop").plan
    with pytest.raises(DocumentError, match="found a plan, expected a decision"):
        read_decision(path)


@pytest.mark.parametrize("name", ["snapshots", "outcomes", "results.json", "stages.json", "set-aside.json"])
def test_a_policy_cannot_take_a_name_of_the_run_itself(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInputError, match="rename the policy"):
        RunFolder(tmp_path).policy(name)


def test_the_past_is_read_from_where_metrics_were_last_read_and_two_weeks_back_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[timedelta] = []

    def read(policy: ConsumerScalingPolicy, since: datetime, until: datetime) -> MetricHistory:
        asked.append(until - since)
        if until == times[1]:
            raise OutOfReachError("prometheus is away")
        point = GroupPoint(until, 60.0, 5.0, 5.0, 0, None, None, False)
        source = policy.spec.source
        return MetricHistory(
            "rocketmq", source.cluster, source.group, "prometheus/test", 60.0, 0.0, until, (), (point,), ()
        )

    monkeypatch.setattr(metrics_past, "read_past", read)
    policy = parse_policy(POLICY, "p.yaml")
    times = [START + timedelta(minutes=minutes) for minutes in (0, 10, 20, 30, 60 * 24 * 20)]
    for until in times:
        land_pasts([policy], tmp_path, until)
    since = [timedelta(minutes=minutes) for minutes in (10, 20, 10)]
    assert asked == [timedelta(days=14), *since, timedelta(days=14)]
    landed = sorted((tmp_path / "metrics").rglob("*.json"))
    assert [METRIC_HISTORY.read(path).newest_at for path in landed] == [times[0], *times[2:]]


def test_a_first_run_without_metrics_is_made_good_by_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group was looked at since then, which is no reason to leave out its two weeks."""
    since: list[datetime] = []

    def read(_policy: ConsumerScalingPolicy, begin: datetime, _until: datetime) -> None:
        since.append(begin)
        raise OutOfReachError("prometheus is away")

    monkeypatch.setattr(metrics_past, "read_past", read)
    policy = parse_policy(POLICY, "p.yaml")
    land_pasts([policy], tmp_path, START)
    pipeline.land_samples(tmp_path, watch(3))
    land_pasts([policy], tmp_path, START + timedelta(minutes=10))
    assert since == [START - timedelta(days=14), START + timedelta(minutes=10) - timedelta(days=14)]


@pytest.mark.parametrize("text", ["", "yesterday", "20261121T101500.000Z\n", "29991231T000000.000Z"])
def test_a_mark_that_tells_no_time_before_now_is_not_gone_by(tmp_path: Path, text: str) -> None:
    policy = parse_policy(POLICY, "p.yaml")
    mark = metrics_read_mark(policy, tmp_path)
    mark.parent.mkdir(parents=True)
    mark.write_text(text)
    assert last_read(policy, tmp_path, START) == START - timedelta(days=14)


WITH_METRICS = POLICY.replace("group: shop}", "group: shop, prometheus: {url: http://one:9090}}")


def failing(monkeypatch: pytest.MonkeyPatch, errors: dict[str, PlannerError]) -> list[str]:
    """Let metrics servers fail by URL; return the groups that are asked for, as they are."""
    asked: list[str] = []

    def fail(policy: ConsumerScalingPolicy, *_: object) -> MetricHistory:
        server = policy.spec.source.prometheus
        assert server is not None
        asked.append(policy.spec.source.group)
        raise errors[server.url]

    monkeypatch.setattr(metrics_past, "read_past", fail)
    return asked


def test_a_metrics_server_that_fails_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failing(monkeypatch, {"http://one:9090": OutOfReachError("prometheus is away")})
    land_pasts([parse_policy(WITH_METRICS, "p.yaml")], tmp_path, START)
    assert caplog.messages == ["past of group shop was not read: prometheus is away"]
    assert not (tmp_path / "metrics").exists()


def test_a_metrics_server_that_is_away_is_asked_once_and_the_others_are_still_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each try costs a minute; one that answers something else costs nothing, and may answer the next group."""
    asked = failing(
        monkeypatch, {"http://one:9090": OutOfReachError("away"), "http://two:9090": AnswerError("too much came")}
    )
    of_two = WITH_METRICS.replace("//one", "//two")
    texts = [WITH_METRICS.replace("shop", "a"), of_two.replace("shop", "b")]
    texts += [WITH_METRICS.replace("shop", "c"), of_two.replace("shop", "d")]
    land_pasts([parse_policy(text, "p.yaml") for text in texts], tmp_path, START)
    assert asked == ["a", "b", "d"]
    assert len(caplog.messages) == 3


def test_the_period_of_a_run_is_that_of_its_slowest_installation(
    policies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history judges gaps by it: looks that take 10 s leave nothing out."""
    (policies / "far.yaml").write_text(POLICY.replace("shop", "far").replace("9876", "9877"), encoding="utf-8")
    (sample,) = watch(1)

    def looks(place: Installation, seconds: float, pace: Pace) -> Iterator[tuple[ConsumerScalingPolicy, GroupSample]]:
        (policy,) = place.policies
        for _ in range(int(seconds)):
            pace.note(10.05 if policy.metadata.name == "far" else 0.2)
            yield policy, sample

    monkeypatch.setattr(observe, "watch_installation", looks)
    run = observe_live(policies, tmp_path / "data", 60.0)
    assert 10.05 < 2 * run.sample_every_s < 2 * 10.05
