"""``make demo-doctor``: a deliberately sick RocketMQ on loopback, and what the doctor says of it.

Real brokers, real clients: one group for each thing that goes wrong, healthy ones among them. All of it ends with the
demo; the page stays. ``make demo-doctor WATCH=120`` watches for two minutes instead of one.
"""

import subprocess
import sys
import time
from pathlib import Path

from tests.clusters.errors import CannotRunHereError, StartFailedError
from tests.clusters.rocketmq import NEW, RocketMQCluster
from tests.load import sick_groups

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "work/doctor.html"
STARTS_S = 8
WATCH_S = 60
"""A minute shows whether members keep up; the command watches for at least so long, however slow the machine is."""

SPARE_S = 600
"""The load goes on for so much longer than the watch: looks at all groups take their time on a slow machine."""


def main() -> int:
    """Start the ward, let the doctor look at it, and return 0 when it found the faults."""
    watch_s = int(sys.argv[1]) if len(sys.argv) > 1 else WATCH_S
    try:
        return _demo(watch_s)
    except (CannotRunHereError, StartFailedError) as error:
        print(f"demo-doctor: {error}", file=sys.stderr)
        return 3


def _demo(watch_s: int) -> int:
    groups = len(sick_groups.SICK) + len(sick_groups.HEALTHY)
    print(f"Starting RocketMQ {NEW}: a name server, two brokers, {groups} consumer groups", flush=True)
    with RocketMQCluster.start(NEW, brokers=2) as cluster:
        wards = sick_groups.admit(cluster, seconds=watch_s + SPARE_S)
        time.sleep(STARTS_S)
        wards.append(sick_groups.admit_fresh(cluster))
        command = ["doctor", "--all", "-n", cluster.name_server, "--watch", str(watch_s), "--html", str(PAGE)]
        print(f"\n$ planner {' '.join(command[:4])} --watch {watch_s} --html {PAGE.relative_to(ROOT)}\n", flush=True)
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        found = subprocess.run([sys.executable, "-m", "planner.cli.main", *command, "--top", "100"], check=False)
        for ward in wards:
            ward.kill()
    print(f"\nThe page: {PAGE}")
    return 0 if found.returncode == 1 else found.returncode or 1


if __name__ == "__main__":
    sys.exit(main())
