"""How often a group is decided on: a run's own period, which a policy that weighs is decided by."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from planner.documents.policy import ConsumerScalingPolicy
from planner.documents.policy_folder import read_policies
from planner.model.samples import GroupSample
from planner.runs import observe
from planner.runs.observe import observe_each
from planner.runs.past_runs import schedule_period_s
from planner.sources.live import Installation, Pace
from planner.storage.layout import RunFolder
from tests.sample_builders import POLICY, START, watch

WEIGHED = POLICY.replace("objective: {", "objective: {rule: Horizon, ")


def ended(data: Path, *seconds: float) -> None:
    """Let runs have ended so many seconds after ``START``."""
    for after in seconds:
        RunFolder.of(data, START + timedelta(seconds=after)).policies.mkdir(parents=True)


def kept(
    text: str, data: Path, period_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> tuple[ConsumerScalingPolicy, ConsumerScalingPolicy]:
    """Return the policy as it was written, and as a run of this period keeps it."""

    def looks(target: Installation, _seconds: float, _pace: Pace) -> Iterator[tuple[object, GroupSample]]:
        yield target.policies[0], watch(1)[0]

    monkeypatch.setattr(observe, "watch_installation", looks)
    folder = data / "written"
    folder.mkdir(parents=True)
    (folder / "shop.yaml").write_text(text, encoding="utf-8")
    run, _ = observe_each(folder, data, 0.0, period_s=period_s)
    return read_policies(folder)[0], read_policies(run.policies)[0]


@pytest.mark.parametrize(
    ("seconds", "period_s"),
    [((), None), ((0,), None), ((0, 31), 30.0), ((0, 30, 62), 30.0), ((0, 30, 9000), None), ((0, 4000), None)],
)
def test_three_regular_runs_show_a_schedule(tmp_path: Path, seconds: tuple[float, ...], period_s: float | None) -> None:
    """The present run is the last one. Red when one gap, or runs by hand, count as a schedule."""
    ended(tmp_path, *seconds)
    last = START + timedelta(seconds=(seconds[-1] if seconds else 0) + 30)
    assert schedule_period_s(tmp_path, last) == period_s


def test_a_run_states_its_own_period_and_the_policy_stays_the_same_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red when the bill counts on ten minutes though the group is decided on every 30 s, or plans lose their policy."""
    written, of_run = kept(WEIGHED, tmp_path, 30.0, monkeypatch)
    assert written.objective.wait is not None
    assert of_run.objective.wait is not None
    assert (written.objective.wait.decided_every_s, of_run.objective.wait.decided_every_s) == (600.0, 30.0)
    assert of_run.digest == written.digest


def test_a_stated_period_stays_and_the_run_says_that_it_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stated = WEIGHED.replace("rule: Horizon", "rule: Horizon, decidedEverySeconds: 600")
    _, of_run = kept(stated, tmp_path, 30.0, monkeypatch)
    assert of_run.spec.objective.decided_every_seconds == 600.0
    assert "decidedEverySeconds is 600, and runs come every 30 s" in caplog.text


@pytest.mark.parametrize(("text", "period_s"), [(POLICY, 30.0), (WEIGHED, None)])
def test_a_policy_without_a_period_to_state_is_kept_as_it_was_written(
    text: str, period_s: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, of_run = kept(text, tmp_path, period_s, monkeypatch)
    assert of_run == written
