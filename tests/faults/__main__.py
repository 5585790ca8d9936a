"""``make faults``: 1 000 kills, all scenarios, 200 changes; a table at the end, exit code 1 where anything went wrong.

``KILLS=7``, ``SEED=1234`` and the like choose; ``SEED=n KILLS=1 DRIFTS=0 SCENARIOS=`` replays one kill.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.clusters.kubernetes import ControlPlane
from tests.faults import drifts, kills
from tests.faults.observer import Observer
from tests.faults.place import install_definitions
from tests.faults.scenarios import LONG, SCENARIOS, Scenario, api_server_away, carry_out, check

AWAY_S = 30.0
SCENARIOS_AT_ONCE = 6


def main() -> int:
    """Return 0 when every case came to the end that it must."""
    parser = argparse.ArgumentParser(prog="make faults")
    parser.add_argument("--seed", type=int, default=0, help="first seed of kills and of changes")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--drifts", type=int, default=200)
    parser.add_argument("--scenarios", default="all", help="words of a scenario's name, all, or none")
    parser.add_argument("--at-once", type=int, default=kills.AT_ONCE, help="kills at a time")
    asked = parser.parse_args()
    with ControlPlane.start() as cluster, tempfile.TemporaryDirectory() as folder:
        install_definitions(cluster)
        print(cluster.header)
        seeds = range(asked.seed, asked.seed + asked.kills)
        changes = range(asked.seed, asked.seed + asked.drifts)
        wrong = _kills(cluster, Path(folder), seeds, asked.at_once) + _drifts(cluster, Path(folder), changes)
        wrong += _scenarios(cluster, Path(folder), asked.scenarios)
    print(f"{wrong} went wrong" if wrong else "all came to the end that they must")
    return 1 if wrong else 0


def _kills(cluster: ControlPlane, folder: Path, seeds: Sequence[int], at_once: int) -> int:
    cases = []
    for case in kills.run_all(cluster, folder, seeds, at_once):
        cases.append(case)
        if case.faults:
            print(f"\nWRONG {case}")
        _progress("kills", len(cases), len(seeds), sum(bool(one.faults) for one in cases))
    if cases:
        print(f"\n{kills.table(cases)}")
    return sum(bool(one.faults) for one in cases)


def _drifts(cluster: ControlPlane, folder: Path, seeds: Sequence[int]) -> int:
    done = wrong = 0
    for case in drifts.run_all(cluster, folder, seeds):
        done, wrong = done + 1, wrong + bool(case.wrong)
        if case.wrong:
            print(f"\nWRONG {case}")
        _progress("changes", done, len(seeds), wrong)
    if done:
        print()
    return wrong


def _scenarios(cluster: ControlPlane, folder: Path, wanted: str) -> int:
    """Run those that leave the cluster alone at once, the others one after the other."""
    chosen = [one for one in (*SCENARIOS, *LONG) if wanted == "all" or wanted in one.name]
    alone = [one for one in (api_server_away(AWAY_S),) if wanted == "all" or wanted in one.name]
    with Observer(cluster) as observer:

        def ran(scenario: Scenario) -> bool:
            began = time.monotonic()
            try:
                outcome = carry_out(cluster, observer, folder, scenario)
                check(scenario, outcome)
            except Exception as error:
                print(f"WRONG {scenario.name}: {error}")
                return False
            print(f"  {scenario.name:40} {outcome.phase:12} {time.monotonic() - began:4.0f} s  {outcome.message}")
            return True

        with ThreadPoolExecutor(SCENARIOS_AT_ONCE) as pool:
            ends = list(pool.map(ran, chosen))
        ends += [ran(one) for one in alone]
    return ends.count(False)


def _progress(what: str, done: int, of: int, wrong: int) -> None:
    print(f"\r{what}: {done} of {of}, {wrong} wrong ", end="" if sys.stdout.isatty() else "\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
