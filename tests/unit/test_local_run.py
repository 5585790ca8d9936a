"""A run without Airflow and Spark, from landed samples to plans: every policy in a process, and each by itself."""

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from planner import pipeline
from planner.cli.run import period_s, watch_s
from planner.documents.data import OUTCOMES, SNAPSHOT
from planner.errors import BadInputError
from planner.policies.fleet import keep_fleet, read_fleet
from planner.runs import local_run
from planner.runs.conclude import failures_of
from planner.runs.local_run import Served, Wishes, serve, serve_all
from planner.runs.policy_stages import read_decision
from planner.storage.run import Run
from tests.sample_builders import POLICY, steady, watch
from tests.unit.cli.test_cli import planner, refused

DEADLY = "deadly"


def run_of(tmp_path: Path, *names: str) -> Run:
    """Return an observed run: group ``shop`` has samples, other groups were not read."""
    folder = tmp_path / "policies"
    folder.mkdir()
    for name in ("shop", *names):
        (folder / f"{name}.yaml").write_text(POLICY.replace("shop", name), encoding="utf-8")
    samples = watch(30, steady(70, 70))
    pipeline.land_samples(tmp_path, samples)
    run = Run(tmp_path, folder, samples[0].at, samples[-1].at, 5.0)
    keep_fleet(read_fleet(folder), run.folder, dict.fromkeys(names, "its group was not read: nobody answers"))
    return Run(tmp_path, run.folder.policies, run.since, run.until, 5.0)


def killed_by_one(run: Run, names: Sequence[str], wishes: Wishes) -> list[Served]:
    """Serve as ever, but let the system kill the process that serves one policy."""
    if DEADLY in names:
        os.kill(os.getpid(), signal.SIGKILL)
    return serve(run, names, wishes)


def test_each_policy_ends_with_its_decision_or_its_own_sentence(tmp_path: Path) -> None:
    run = run_of(tmp_path, "away")
    away, shop = serve_all(run, Wishes(with_pages=False, plans=tmp_path / "plans"), 2)
    assert (shop.decided["policy"], shop.decided["from"], shop.decided["to"]) == ("shop", 3, 6)
    (copy,) = (tmp_path / "plans").iterdir()
    assert shop.decided["plan"] == str(copy)
    files = run.folder.policy("shop")
    assert copy.read_bytes() == files.plan.read_bytes()
    assert (SNAPSHOT.read(run.folder.snapshot("shop")).at, bool(OUTCOMES.read(files.outcomes))) == (run.until, True)
    assert away.decided["to"] is None
    assert "its group was not read: nobody answers" in away.decided["reason"]
    assert not files.report.exists()


def shared_run(tmp_path: Path, arriving: dict[str, int]) -> Run:
    """Return an observed run of two groups that the same pods serve; so many messages come in a queue and sample."""
    folder = tmp_path / "policies"
    folder.mkdir()
    for name in arriving:
        others = sorted({"shop", "mail"} - {name})
        named = POLICY.replace("name: shop}", f"name: {name}}}").replace("group: shop", f"group: {name}")
        shared = named.replace("{name: shop-consumer}", f"{{name: shop-consumer, sharedWith: {others}}}")
        (folder / f"{name}.yaml").write_text(f"{shared}  capacity: {{messagesPerSecond: 200}}\n", encoding="utf-8")
    for name, count in arriving.items():
        samples = [replace(sample, group=name) for sample in watch(30, steady(count, count))]
        pipeline.land_samples(tmp_path, samples)
    run = Run(tmp_path, folder, samples[0].at, samples[-1].at, 5.0)
    keep_fleet(read_fleet(folder), run.folder, {})
    return Run(tmp_path, run.folder.policies, run.since, run.until, 5.0)


@pytest.mark.slow
def test_groups_of_the_same_pods_get_one_plan_in_a_run(tmp_path: Path) -> None:
    """Red when each policy of the target is planned for by itself; a second try of the run says the same."""
    run = shared_run(tmp_path, {"mail": 10, "shop": 220})
    for _ in range(2):
        served = {each.decided["policy"]: each.decided for each in serve_all(run, Wishes(with_pages=False), 2)}
        assert served["shop"]["from"] == 3 < (served["shop"]["to"] or 0)
        assert served["shop"]["plan"] is not None
        assert (served["mail"]["hold"], served["mail"]["plan"]) == ("SharedTarget", None)
        kept = {name: read_decision(run.folder.policy(name).decision).decision for name in served}
        assert kept["shop"].target == served["shop"]["to"]
        assert kept["mail"].hold_cause == "SharedTarget"


def test_no_group_is_planned_for_while_another_of_its_pods_is_unknown(tmp_path: Path) -> None:
    """Red when a policy that could not be read is taken for one that asks for nothing."""
    (shop,) = serve_all(shared_run(tmp_path, {"shop": 220}), Wishes(with_pages=False), 1)
    assert (shop.decided["hold"], shop.decided["plan"]) == ("SharedTarget", None)
    assert "policy mail, which spec.scaleTargetRef.sharedWith names, is not one of this run's" in shop.decided["reason"]


@pytest.mark.slow
def test_a_process_that_is_killed_costs_its_own_policy_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Red when a killed process ends the run, or takes the policies beside it along."""
    monkeypatch.setattr(local_run, "serve", killed_by_one)
    run = run_of(tmp_path, DEADLY)
    deadly, shop = serve_all(run, Wishes(with_pages=False), 2)
    assert shop.decided["to"] == 6
    assert "was killed: give the run more memory" in deadly.decided["reason"]
    assert DEADLY in failures_of(run, [deadly.decided, shop.decided], {})


def test_a_copy_that_cannot_be_written_is_that_policys_failure(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    (tmp_path / "plans").write_text("a file")
    (served,) = serve(run, ["shop"], Wishes(with_pages=False, plans=tmp_path / "plans"))
    assert served.decided["to"] is None
    assert "cannot be written" in served.decided["reason"]


def test_a_watch_ends_within_the_period_unless_somebody_asks_for_more_which_is_refused() -> None:
    """Red when ``--every 30s`` without another word watches for a minute, so that a run begins each minute."""
    assert [watch_s(None, period) for period in (None, 30, 90, 600)] == [60, 15, 45, 60]
    assert [watch_s(stated, period) for stated, period in ((0, 30), (30, 30), (300, None))] == [0, 30, 300]
    with pytest.raises(BadInputError, match="found 60, expected at most the 30 s of --every"):
        watch_s(60, 30)


def test_times_and_folders_that_cannot_be_are_refused_at_once(tmp_path: Path) -> None:
    assert [period_s(text) for text in ("30s", "5m", "1h")] == [30, 300, 3600]
    for text in ("30", "0s", "5 m", "-5m", "1d"):
        with pytest.raises(BadInputError, match=r"expected a time like 30s, 5m or 1h"):
            period_s(text)
    command = ("run", "--policies", tmp_path / "absent", "--data", tmp_path, "--observe-seconds", 0, "--no-page")
    refused(planner(*command), 2, "policy folder", "does not exist")
    (tmp_path / "shop.yaml").write_text("")
    by_file = ("run", "-p", tmp_path / "shop.yaml", "--data", tmp_path)
    refused(planner(*by_file), 2, "shop.yaml is a file: name the folder that holds it")
    refused(planner(*command, "--every", "often"), 2, "option --every")
