"""Runs of ``planner run --every`` on many groups, of which nothing has changed since the first one.

    python -m benchmarks.repeated_runs 1000    # or: python -m benchmarks repeated_runs

Groups of 32 queues and 3 members, a reading every 30 s for half an hour before. Printed for each run: its seconds and
those of the processor, beside a run that decides on every group. Brokers are not read: ``benchmarks/groups_*.py`` has
what that takes.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from planner.documents.data import SAMPLE
from planner.documents.policy_folder import read_policies
from planner.model.queues import MessageQueue
from planner.model.samples import GroupSample
from planner.policies.fleet import decided_every, keep_fleet, read_fleet
from planner.runs.local_run import Wishes, serve_all
from planner.runs.past_runs import forget
from planner.runs.standing import StandingDecisions
from planner.storage.readings import write_reading
from planner.storage.run import Run
from tests.sample_builders import POLICY, watch

EVERY_S, BEFORE, RUNS = 30.0, 60, 6
RATE = 90.0
"""Messages a second and queue."""
TEXT = POLICY.replace(
    "  objective: {maxUtilisation: 0.8, backlogGoneSeconds: 600}\n", "  capacity: {messagesPerSecond: 1200}\n"
)


def main() -> None:
    """Print one line a run."""
    count = next((int(word) for word in sys.argv[1:] if word.isdecimal()), 1000)
    with tempfile.TemporaryDirectory(prefix="planner-runs-") as folder:
        repeat_runs(Path(folder), [f"group-{number:05}" for number in range(count)])


def repeat_runs(data: Path, groups: Sequence[str]) -> None:
    """Let a first run decide on every group, and print what it and the next ones take."""
    (data / "policies").mkdir()
    for group in groups:
        (data / "policies" / f"{group}.yaml").write_text(TEXT.replace("shop", group), encoding="utf-8")
    samples = made_samples()
    for sample in samples[:BEFORE]:
        land(data, groups, sample)
    standing = StandingDecisions()
    for sample in samples[BEFORE - 1 :]:
        land(data, groups, sample)
        run_once(data, sample, standing)


def made_samples() -> tuple[GroupSample, ...]:
    """Return samples of one group whose queues get the same load, with the chance of single messages in it."""
    random = np.random.default_rng(1)
    arrived = np.cumsum(random.poisson(RATE * EVERY_S, (BEFORE + RUNS, 32)), axis=0)

    def offsets(queue: MessageQueue, place: int) -> tuple[int, int]:
        number = 16 * (queue.topic == "payments") + 8 * (queue.broker == "broker-b") + queue.queue_id
        return int(arrived[place, number]), int(arrived[place, number]) - 3

    return watch(BEFORE + RUNS, offsets, EVERY_S, {"orders": 8, "payments": 8})


def land(data: Path, groups: Sequence[str], sample: GroupSample) -> None:
    """Write the sample as the reading of an installation of all groups."""
    documents = {group: SAMPLE.dump(replace(sample, group=group)) for group in groups}
    write_reading(data, sample.system, sample.cluster, sample.at, documents)


def run_once(data: Path, sample: GroupSample, standing: StandingDecisions) -> None:
    """Do what ``planner run --every 30s`` does once the brokers are read, and print what it took."""
    began, used = time.perf_counter(), time.process_time()
    run = Run(data, data / "policies", sample.at, sample.at, EVERY_S)
    keep_fleet(decided_every(read_fleet(run.policies), EVERY_S), run.folder, {})
    run = replace(run, policies=run.folder.policies)
    kept = read_policies(run.policies)
    confirmed = standing.check(run, kept)
    names = [served.decided["policy"] for served in confirmed]
    fresh = list(serve_all(run, Wishes(with_pages=False), 2, names))
    standing.remember(run, fresh)
    forget(data, tuple(kept), sample.at, 30)
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    sentence = f"{len(confirmed)} stand, {len(fresh)} decided: {seconds:.1f} s"
    print(sentence if fresh else f"{sentence}, {processor:.1f} s of processor", flush=True)


if __name__ == "__main__":
    main()
