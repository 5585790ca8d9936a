"""``python -m tests.soak``: let a day pass in minutes without a hand, and say what it came to. See docs/soak.md."""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from planner.storage.files import write_atomically
from tests.dags.answering import awaited
from tests.dags.scheduling import Airflow
from tests.soak.day import HOURS, Day
from tests.soak.outcome import GroupOutcome, Runs, failed, table
from tests.soak.town import LOOK_S, Town, dump, group_of, looking, open_town, scheduling, send

PAGE = Path("docs/soak.md")
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
DAG = "consumer_planner"
FOLLOWERS = ("consumer_planner_approval", "consumer_planner_apply")
ENDED = ("success", "failed")
TOLD_EVERY_S = 30.0
AFTER_S = 120.0
"""The schedule goes on for so long after the day, so that what the last hours asked for is done."""

RISES: Mapping[str, tuple[float, Sequence[tuple[float, float, float]]]] = {
    "orders": (60.0, ((10.0, 250.0, 2.0), (20.0, 330.0, 1.5))),
    "refunds": (40.0, ((14.0, 300.0, 4.0), (3.0, 120.0, 0.7))),
}
"""Floor, and rises as hour, height and width: two peaks, one of them steep; and a long plateau after a short burst."""


def main(arguments: Sequence[str]) -> int:
    """Let the day pass; 1 where an end was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long the day takes")
    parser.add_argument("--folder", type=Path, default=Path("work/soak"), help="logs, data, plans and looks")
    parser.add_argument("--page", action="store_true", help=f"write the table in {PAGE}")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve() / f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    folder.mkdir(parents=True)
    seconds = options.minutes * 60.0
    days = {name: Day(seconds, floor, rises) for name, (floor, rises) in RISES.items()}
    groups = [group_of(folder, name, day) for name, day in days.items()]
    with open_town(folder, groups) as town, scheduling(town, folder) as airflow:
        runs = pass_day(town, airflow, seconds, lambda gone_s: gone_s >= seconds + AFTER_S)
        ends = [GroupOutcome(one.name, town.plans(one), one.ready, town.served(one)) for one in groups]
        dump(town, folder)
    lines = table(runs, ends)
    print("\n".join(lines))
    if options.page:
        write_page(lines, options.minutes)
    return 1 if any(True for one in ends for _ in one.wrong_ends()) or failed(runs) else 0


def pass_day(town: Town, airflow: Airflow, seconds: float, is_over: Callable[[float], bool]) -> Runs:
    """Send the day while the schedule runs; return how each run of each DAG ended, once all that was begun is done.

    ``is_over`` is asked every few seconds with the seconds that are gone.
    """
    since_s = time.time()
    awaited(lambda: DAG in airflow.dags(), "the scheduled DAG")
    producers = [send(town.stage, group) for group in town.groups]
    with looking(town, since_s):
        airflow.server.ask("PATCH", f"/dags/{DAG}", {"is_paused": False})
        told_s = 0.0
        while not is_over(gone_s := time.time() - since_s):
            if gone_s >= told_s:
                told_s = gone_s + TOLD_EVERY_S
                states = ", ".join(f"{group.name} {group.ready[-1][2]} pods" for group in town.groups if group.ready)
                print(f"hour {gone_s / seconds * HOURS:4.1f}: {len(airflow.runs(DAG))} runs; {states}", flush=True)
            time.sleep(LOOK_S)
        # Paused too soon, Airflow would leave the run that is under way as it is, for good.
        begun = states_of(airflow, DAG).keys()
        awaited(lambda: all(states_of(airflow, DAG)[run] in ENDED for run in begun), "the end of all runs until now")
        airflow.server.ask("PATCH", f"/dags/{DAG}", {"is_paused": True})
        awaited(lambda: not town.open_plans(), "the end of the last plan")
        for dag in FOLLOWERS:
            awaited(lambda dag=dag: all(one in ENDED for one in states_of(airflow, dag).values()), f"the runs of {dag}")
    for producer in producers:
        producer.stop()
    scheduled = {run: state for run, state in states_of(airflow, DAG).items() if run in begun}
    return {DAG: scheduled} | {dag: states_of(airflow, dag) for dag in FOLLOWERS}


def states_of(airflow: Airflow, dag: str) -> Mapping[str, str]:
    """Return the state of each run of a DAG."""
    return {run["dag_run_id"]: run["state"] for run in airflow.runs(dag)}


def write_page(lines: Sequence[str], minutes: float) -> None:
    """Put the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    head, tail = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    told = f"Measured on {datetime.now(UTC):%d %B %Y} in {minutes:.0f} minutes."
    write_atomically(PAGE, "\n".join([head, "", told, "", *lines, "", tail]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
