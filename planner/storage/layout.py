"""Where things lie below one data folder, by group and time.

::

    readings/rocketmq/<cluster>/20261121T101500.000Z-1a2b3c4d5e6f.jsonl   one reading of an installation: its groups'
                                                                   samples, a line each, until they are packed
    samples/rocketmq/<cluster>/<group>/20261121T101500.000Z.json   one sample of one group, until it is packed
    readings/rocketmq/<cluster>/set-aside/                         files that cannot be read, out of everybody's way
    samples/rocketmq/<cluster>/<group>/set-aside/                  the same
    metrics/rocketmq/<cluster>/<group>/20261121T101500.000Z.json   a group's past out of metrics, until it is imported
    metrics/rocketmq/<cluster>/<group>/read-up-to.txt              the time up to which metrics were read
    calibration/rocketmq/<cluster>/<group>/20261121T101500.000Z-1a2b3c4d5e6f.json   how a plan's forecast did, by time
    history/                                                       the lag history (Spark): docs/history.md
    last-decisions.json                                            what live runs made of each policy, for notices
    offered-plans.json                                             the last plan of each policy that was offered
    asked/<policy>.txt                                             digest of its last plan that people were asked for
    sampling.json                                                  since when planner sample has read each group
    sampling.lock                                                  which planner sample reads for this folder
    runs/<run>/policies/<policy>.yaml                              the policies as the run read them, once
    runs/<run>/problems.json                                       policy or file -> why the run could not observe it
    runs/<run>/origin.json                                         the objects that the policies are, in a cluster
    runs/<run>/snapshots/<policy>.json                             what is true, one file a policy
    runs/<run>/outcomes/*.parquet                                  candidates of all policies (Spark)
    runs/<run>/set-aside.json                                      file -> why it was set aside in this run (Spark)
    runs/<run>/stands.json                         policy -> folder of the former run whose decision stands
    runs/<run>/results.json                                        what came of every policy, one line each (Spark)
    runs/<run>/stages.json                                         each stage's counts and seconds (Spark)
    runs/<run>/<policy>/decision.yaml                              what was decided, or else
    runs/<run>/<policy>/own-decision.yaml                          what its group would get alone, if pods are shared
    runs/<run>/<policy>/no-decision.txt                            one sentence that says why nothing was
    runs/<run>/<policy>/                                           snapshot.json, outcomes.json, plan.yaml, report.html
    runs/<run>/<policy>/answer.json                                what a person answered to its plan (Airflow)
    backtests/<until>/rows/*.parquet                               every run of a backtest of all groups (Spark)
    demand/<at>/rows/*.parquet                                     what the load of every group may be (Spark)
    migrations/<run>/<policy>.<request>/                           snapshot.json and plan.yaml of a migration

A run is named by the time that its snapshots speak of.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from planner.errors import BadInputError
from planner.model.points import MetricHistory
from planner.model.samples import GroupSample
from planner.storage.files import remove_file
from planner.text.bounded import is_path

RUNS: Final = "runs"
TIDY: Final = "tidy"
"""The stage of a run that no decision waits for, as ``stages.json`` names it."""
MOST_BYTES: Final = 255
"""Of one path segment, on the file systems of Linux."""
_SHOWN: Final = 60


def file_name(name: str) -> str:
    """Return ``name`` as one path segment, which ``name_of_file`` reads; names may hold ``%`` and ``|``, or be ``..``.

    Raises ``BadInputError`` for a name that no path segment can hold: an empty one, or one that is too long.
    """
    quoted = quote(name, safe="", errors="surrogatepass")
    if not quoted.strip("."):
        quoted = quoted.replace(".", "%2E")  # the folder itself, or the one above it
    if not 0 < len(quoted) <= MOST_BYTES:
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
        raise BadInputError(
            f"name {shown!r} takes {len(quoted)} bytes as a file name, expected 1 to {MOST_BYTES}: rename the group or "
            "cluster, or leave it out of what is kept in a data folder"
        )
    return quoted


def name_of_file(segment: str) -> str:
    """Return the name that ``file_name`` wrote."""
    return unquote(segment, errors="surrogatepass")


def time_name(at: datetime) -> str:
    """Return the time in UTC as a name that sorts by time, to the millisecond."""
    in_utc = at.astimezone(UTC)
    return f"{in_utc:%Y%m%dT%H%M%S}.{in_utc.microsecond // 1000:03d}Z"


_TIME_NAME = re.compile(r"\d{8}T\d{6}\.\d{3}Z")


def is_time_name(name: str) -> bool:
    """Tell whether a name is one that ``time_name`` makes."""
    if _TIME_NAME.fullmatch(name) is None:
        return False
    try:
        time_of_name(name)
    except ValueError:  # digits of no time: the 99th of a month
        return False
    return True


def time_of_name(name: str) -> datetime:
    """Return the time in UTC that a ``time_name`` tells, to the millisecond."""
    return datetime.strptime(name, "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=UTC)


_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def local_folder(text: str, name: str) -> Path:
    """Return the folder or file that ``text`` names; ``name`` is the parameter. Raises ``BadInputError`` for a URI,
    and for characters that no path can hold.

    A path made of ``s3://bucket`` would be the folder ``s3:`` of the working directory.
    """
    if _URI.match(text):
        raise BadInputError(
            f"{name} is {text}: only a path works here, of this machine or mounted on every worker of an Airflow, so "
            "mount the store and give its path; a URI is possible for history alone"
        )
    if not is_path(text):
        raise BadInputError(f"{name} is {text!r}: no path can hold that, so give another one")
    return Path(text)


def samples_folder(data: Path) -> Path:
    """Return the folder of all raw samples."""
    return data / "samples"


def readings_folder(data: Path) -> Path:
    """Return the folder of all readings of installations."""
    return data / "readings"


def cluster_readings(data: Path, system: str, cluster: str) -> Path:
    """Return the folder of the readings of one cluster's installations."""
    return readings_folder(data) / file_name(system) / file_name(cluster)


def group_folder(data: Path, system: str, cluster: str, group: str) -> Path:
    """Return the folder of one group's raw samples."""
    return samples_folder(data) / file_name(system) / file_name(cluster) / file_name(group)


def sample_path(data: Path, sample: GroupSample) -> Path:
    """Return where a sample of one group and time belongs."""
    return group_folder(data, sample.system, sample.cluster, sample.group) / f"{time_name(sample.at)}.json"


def asked_plan(data: Path, policy: str) -> Path:
    """Return the file that names the policy's last plan for which people were asked, by its digest."""
    return data / "asked" / file_name(f"{policy}.txt")


def sampling_record(data: Path) -> Path:
    """Return the file in which ``planner sample`` keeps since when it has read each group."""
    return data / "sampling.json"


def sampling_lock(data: Path) -> Path:
    """Return the file that one ``planner sample`` at a time has locked."""
    return data / "sampling.lock"


def metrics_folder(data: Path) -> Path:
    """Return the folder of every group's past out of metrics that waits to be imported."""
    return data / "metrics"


def metrics_path(data: Path, history: MetricHistory, newest: datetime) -> Path:
    """Return where a group's past out of metrics up to ``newest`` waits to be imported."""
    return _group_metrics(data, history.system, history.cluster, history.group) / f"{time_name(newest)}.json"


def metrics_mark(data: Path, system: str, cluster: str, group: str) -> Path:
    """Return the file that says up to when a group's metrics were read, as a ``time_name``."""
    return _group_metrics(data, system, cluster, group) / "read-up-to.txt"


def _group_metrics(data: Path, system: str, cluster: str, group: str) -> Path:
    return metrics_folder(data) / file_name(system) / file_name(cluster) / file_name(group)


def calibration_folder(data: Path, system: str, cluster: str, group: str) -> Path:
    """Return the folder of all records of how one group's forecasts did."""
    return data / "calibration" / file_name(system) / file_name(cluster) / file_name(group)


def runs_folder(data: Path) -> Path:
    """Return the folder of every run's policies, plans and pages."""
    return data / RUNS


def history_folder(data: Path) -> Path:
    """Return the folder of the lag history where no setting says otherwise."""
    return data / "history"


def backtests_folder(data: Path) -> Path:
    """Return the folder of all backtests of the lag history."""
    return data / "backtests"


def backtest_rows(data: Path, until: datetime) -> Path:
    """Return the Parquet folder of all runs of a backtest of the time up to ``until``."""
    return backtests_folder(data) / time_name(until) / "rows"


def demand_folder(data: Path) -> Path:
    """Return the folder of all forecasts of loads."""
    return data / "demand"


def demand_rows(data: Path, at: datetime) -> Path:
    """Return the Parquet folder of what the load of all groups may be from ``at`` on."""
    return demand_folder(data) / time_name(at) / "rows"


def migrations_folder(data: Path) -> Path:
    """Return the folder of all migrations."""
    return data / "migrations"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The files of one run."""

    path: Path

    @classmethod
    def of(cls, data: Path, at: datetime) -> "RunFolder":
        """Return the run whose snapshots speak of ``at``."""
        return cls(runs_folder(data) / time_name(at))

    @classmethod
    def of_migration(cls, data: Path, at: datetime) -> "RunFolder":
        """Return the folder of a migration whose snapshot speaks of ``at``."""
        return cls(migrations_folder(data) / time_name(at))

    @property
    def policies(self) -> Path:
        """The folder of the policies as the run read them."""
        return self.path / "policies"

    @property
    def problems(self) -> Path:
        """Why policies were not observed: one sentence each, by the name of policy or file."""
        return self.path / "problems.json"

    @property
    def origin(self) -> Path:
        """The namespace and objects that the policies were read from; only of a run on policies of a cluster."""
        return self.path / "origin.json"

    @property
    def stands(self) -> Path:
        """Which former run's decision stands, by policy: the name of its folder."""
        return self.path / "stands.json"

    @property
    def set_aside(self) -> Path:
        """Which files of the data folder could not be used and were set aside: one sentence each, by path."""
        return self.path / "set-aside.json"

    @property
    def snapshots(self) -> Path:
        """The folder of all snapshots."""
        return self.path / "snapshots"

    @property
    def outcomes(self) -> Path:
        """The Parquet folder of all outcomes."""
        return self.path / "outcomes"

    @property
    def results(self) -> Path:
        """What came of every policy: counts, reason and the plan's file."""
        return self.path / "results.json"

    @property
    def stages(self) -> Path:
        """What every stage of the Spark app read and wrote, and how long it took."""
        return self.path / "stages.json"

    def snapshot(self, policy: str) -> Path:
        """Return the snapshot of one policy's group."""
        return self.snapshots / f"{policy}.json"

    def policy(self, policy: str) -> "PolicyFiles":
        """Return the files of one policy. Raises ``BadInputError`` for a name that the run needs for itself, and for
        one that is too long for its files.
        """
        file_name(f"{policy}.yaml")
        folder = self.path / policy
        if folder in (
            self.policies,
            self.snapshots,
            self.outcomes,
            self.problems,
            self.origin,
            self.set_aside,
            self.results,
            self.stages,
        ):
            raise BadInputError(f"policy {policy} has a name that every run folder needs for itself: rename the policy")
        return PolicyFiles(folder)


@dataclass(frozen=True, slots=True)
class PolicyFiles:
    """What one run found out for one policy: a decision with all that it rests on, or why there is none."""

    folder: Path

    @property
    def snapshot(self) -> Path:
        """The snapshot that the decision rests on."""
        return self.folder / "snapshot.json"

    @property
    def outcomes(self) -> Path:
        """Every candidate's outcome."""
        return self.folder / "outcomes.json"

    @property
    def decision(self) -> Path:
        """The decision."""
        return self.folder / "decision.yaml"

    @property
    def own_decision(self) -> Path:
        """What the group would get alone; only where its pods serve other groups too."""
        return self.folder / "own-decision.yaml"

    @property
    def no_decision(self) -> Path:
        """One sentence: why there is no decision."""
        return self.folder / "no-decision.txt"

    @property
    def plan(self) -> Path:
        """The plan; absent when the decision is to hold."""
        return self.folder / "plan.yaml"

    @property
    def report(self) -> Path:
        """The page for people."""
        return self.folder / "report.html"

    @property
    def answer(self) -> Path:
        """What a person answered to the question whether the plan is to be carried out."""
        return self.folder / "answer.json"

    def forget_results(self) -> None:
        """Remove everything that an earlier try of the same run left, except the reason why there is no decision."""
        for path in (self.snapshot, self.outcomes, self.decision, self.own_decision, self.plan, self.report):
            remove_file(path)
