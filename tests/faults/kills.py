"""An executor is killed somewhere, another one goes on: one case for each seed, and a table of where they died."""

import random
import signal
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from planner.execution.lease import DURATION_S
from planner.execution.observation import Claim
from planner.sources.kubernetes.objects import SET_BY
from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.rest import Json
from tests.faults.executor import Executor, Fault
from tests.faults.judge import judge
from tests.faults.kinds import DELETE, KINDS, RELOCATED, Kind
from tests.faults.observer import Observer
from tests.faults.place import APP, CLAIM, DELETION_COST, GREEN, Place, place

PLAN = "plan"
AT_ONCE: Final = 8
"""Cases at a time: more would only wait for each other on two cores."""
_UNDO_WRITES: Final = 12
"""About how many writing requests it takes to undo a plan."""
_STRIDE: Final = 7
"""So far apart in a kind's effects are those that come one after the other; it divides none of their numbers."""
_LONGEST_S: Final = 25.0
_AFTER: Final = ("nothing", "nothing", "abort", "pause", "delete")
_TO_UNDO: Final = ("abort", "delete")
_ABORT, _PAUSE = "consumerplanner.dev/abort", "consumerplanner.dev/pause"
_END_S: Final = 900.0
_WAITS: Final = ("await", "check")
_REAL_WAIT_IN: Final = 5
"""One case of so many waits until the dead executor's lease is over; the others age it: a wait is most of a case."""


@dataclass(frozen=True)
class Died:
    """Where an executor was killed: at which step, and how far that was. ``at`` is empty where it ended before."""

    at: str
    how: str


@dataclass(frozen=True)
class Case:
    """What one seed came to."""

    seed: int
    kind: str
    deaths: tuple[Died, ...]
    meanwhile: str
    phase: str
    state: str
    faults: tuple[str, ...]

    def __str__(self) -> str:
        died = ", ".join(f"{one.at} ({one.how})" for one in self.deaths) or "nowhere"
        told = f"seed {self.seed}: {self.kind}, killed at {died}, then {self.meanwhile}: {self.phase}, {self.state}"
        return "; ".join([told, *self.faults])


def run_all(cluster: ControlPlane, folder: Path, seeds: Sequence[int], at_once: int = AT_ONCE) -> Iterable[Case]:
    """Yield the case of each seed, in the order in which they end."""
    with Observer(cluster) as observer, ThreadPoolExecutor(at_once) as pool:
        running = [pool.submit(run, cluster, observer, folder, seed) for seed in seeds]
        try:
            for done in as_completed(running):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)  # Ctrl-C waits only for what has begun


def run(cluster: ControlPlane, observer: Observer, folder: Path, seed: int) -> Case:
    """Kill an executor of a plan, have a person act, perhaps kill another, have one go on, judge what was seen.

    The kind of plan goes round with the seed. Of three first deaths two are at an effect, each kind's in turn before
    and after it; all else is chance.
    """
    kind, chance = KINDS[seed % len(KINDS)], random.Random(seed)
    with place(cluster, folder, kind.replicas) as where:
        kind.prepare(where)
        kept = where.kept()
        path = where.write(PLAN, where.fitting(kind.steps(where.ready_pods())))
        record = observer.follow(where.namespace, kind.replicas)
        deaths = [_kill(where, path, _first_fault(kind, seed // len(KINDS), chance), chance)]
        _age_leases(where, seed)
        meanwhile = _meanwhile(where, chance.choice(_AFTER))
        was_there = where.plan(PLAN) is not None
        deaths += _second_death(where, kind, path, meanwhile, chance)
        _age_leases(where, seed)
        # A deleted plan that the second one brought to its end is gone: its file would be a new plan, rightly refused.
        is_gone = was_there and where.plan(PLAN) is None
        said = "gone" if is_gone else _finish(where, path, meanwhile)
        verdict = judge(where, kind, PLAN, record, kept)
        observer.leave(where.namespace)
        phase = str(where.status(PLAN).get("phase", "deleted"))
        wrong = list(verdict.faults)
        if meanwhile not in _TO_UNDO and verdict.state != "new":
            wrong.append("nobody asked for the old state")
        faults = tuple(f"{fault} ({said})" for fault in wrong)
        return Case(seed, kind.name, tuple(one for one in deaths if one.at), meanwhile, phase, verdict.state, faults)


def _age_leases(where: Place, seed: int) -> None:
    if seed % _REAL_WAIT_IN:
        where.age_leases(DURATION_S)


def effects(kind: Kind) -> tuple[Fault, ...]:
    """Return a kill before and one after each effect of a kind's undisturbed run."""
    return tuple(
        Fault(signal.SIGKILL, number, after, request)
        for request, count in kind.effects
        for number in range(1, count + 1)
        for after in (False, True)
    )


def _first_fault(kind: Kind, turn: int, chance: random.Random) -> Fault | None:
    """Return where the first executor is killed, ``None`` for any time at all."""
    if turn % 3 == 2:
        return _any_write(kind.writes, chance) if chance.random() < 0.6 else None
    every, number = effects(kind), turn // 3 * 2 + turn % 3
    return every[number * _STRIDE % len(every)]


def _any_write(of: int, chance: random.Random) -> Fault:
    return Fault(signal.SIGKILL, chance.randint(1, of), chance.random() < 0.5)


def _second_death(where: Place, kind: Kind, path: Path, meanwhile: str, chance: random.Random) -> list[Died]:
    """Kill a second executor: of most plans that are to be undone, at an effect, and of some others anywhere."""
    if meanwhile in _TO_UNDO and chance.random() < 0.7:
        requests = [request for request, _ in kind.effects] + ([DELETE] if kind is RELOCATED else [])
        fault = Fault(signal.SIGKILL, chance.randint(1, 2), chance.random() < 0.5, chance.choice(requests))
        return [_kill(where, path, chance.choice((fault, fault, _any_write(_UNDO_WRITES, chance))), chance)]
    if meanwhile == "nothing" and chance.random() < 0.2:
        return [_kill(where, path, _any_write(kind.writes, chance), chance)]
    return []


def _kill(where: Place, path: Path, fault: Fault | None, chance: random.Random) -> Died:
    """Start an executor and kill it: at a request that writes, or at any time at all."""
    delay_s = chance.uniform(0.3, _LONGEST_S)
    executor = _apply(where, path, fault)
    deadline = time.monotonic() + (_END_S if fault else delay_s)
    while executor.is_running and time.monotonic() < deadline:
        time.sleep(0.05)
    was_killed = executor.is_running or executor.wait() == -signal.SIGKILL
    executor.kill()
    return where_it_died(where) if was_killed else Died("", "")


def _apply(where: Place, path: Path, fault: Fault | None = None) -> Executor:
    log = path.with_suffix(".log")
    return Executor(log, "apply", path, kubeconfig=where.cluster.kubeconfig, fault=fault)


def _meanwhile(where: Place, asked: str) -> str:
    """Have a person do something between two executors; nothing, where no plan is there or it is over and let go.

    Who deletes such a plan and applies its file again makes a new plan, rightly refused: the count is new already.
    """
    plan = where.plan(PLAN)
    if plan is None or ((plan.get("status") or {}).get("ended") and not plan["metadata"].get("finalizers")):
        return "nothing"
    if asked == "delete":
        where.cluster.rest.delete(f"{where.plans}/{PLAN}")
    if asked in ("abort", "pause"):
        where.annotate(PLAN, {_ABORT if asked == "abort" else _PAUSE: "true"})
    return asked


def _finish(where: Place, path: Path, meanwhile: str) -> str:
    """Have an executor that nothing happens to bring the plan to its end; return what it said."""
    executor = _apply(where, path)
    if meanwhile == "pause":

        def is_paused() -> bool:
            return not executor.is_running or where.status(PLAN).get("phase") == "Paused" or _waits(where)

        where.cluster.wait_until("the pause", is_paused, _END_S)
        if where.plan(PLAN) is not None:
            where.annotate(PLAN, {_PAUSE: None})
    code = executor.wait(_END_S)
    assert code in (0, 1), executor.said
    return executor.said.replace("\n", " | ")


def _waits(where: Place) -> bool:
    return "paused by a person" in str(where.status(PLAN).get("held"))


def where_it_died(where: Place) -> Died:
    """Return at which step a plan stands, and whether that step's effect is in."""
    plan = where.plan(PLAN)
    if plan is None:
        return Died("the plan is not there yet", "")
    status = plan.get("status") or {}
    begun, steps = status.get("steps") or [], plan["spec"]["steps"]
    if status.get("phase") == "Aborting":
        return _died_undoing(where, steps, [one for one in begun if not one.get("undoneAt")])
    if status.get("phase") != "Running":
        return Died(str(status.get("phase", "Pending")), "")
    return _died_doing(where, steps, begun[-1]) if begun else Died("Running", "no step begun")


def _died_doing(where: Place, steps: Sequence[Json], last: Json) -> Died:
    if last.get("finishedAt"):
        return Died(last["kind"], "noted")
    if last["kind"].startswith(_WAITS):
        return Died(last["kind"], "waiting")
    is_in = _is_in(where, steps[last["index"]], last["index"])
    return Died(last["kind"], "effect in, not noted" if is_in else "begun, effect not in")


def _died_undoing(where: Place, steps: Sequence[Json], left: Sequence[Json]) -> Died:
    """Return which step's turn it was to be undone, and whether its effect was taken back."""
    if not left:
        return Died("Aborting", "all is undone")
    last = left[-1]
    at = f"undo of {last['kind']}"
    if last["kind"].startswith(_WAITS) or not last.get("undoSince"):
        return Died(at, "not begun")
    is_out = _is_out(where, steps[last["index"]], last["index"])
    return Died(at, "taken back, not noted" if is_out else "begun, not taken back")


def _is_in(where: Place, step: Json, index: int) -> bool:
    match step["kind"]:
        case "createDeployment":
            return where.deployment(GREEN) is not None
        case "deleteDeployment":
            return where.deployment(GREEN) is None
        case "markVictims":
            return _is_marked(where)
    claim = _claim(where, step)
    return claim is not None and claim.has_done(index)


def _is_out(where: Place, step: Json, index: int) -> bool:
    match step["kind"]:
        case "createDeployment":
            return where.deployment(GREEN) is None
        case "markVictims":
            return not _is_marked(where)
    claim = _claim(where, step)
    return claim is not None and claim.has_undone(index)


def _is_marked(where: Place) -> bool:
    return any((one["metadata"].get("annotations") or {}).get(DELETION_COST) for one in where.pods())


def _claim(where: Place, step: Json) -> Claim | None:
    if step["kind"] == "setAutoscaler":
        found, key = where.find(f"{where.scalers}/{step['autoscaler']}"), SET_BY
    else:
        found, key = where.deployment(step.get("deployment") or APP), CLAIM
    text = ((found or {}).get("metadata", {}).get("annotations") or {}).get(key)
    return None if text is None else Claim.parse(text)


def table(cases: Sequence[Case]) -> str:
    """Return where executors died, and how the plans ended."""
    died = Counter((one.at, one.how) for case in cases for one in case.deaths)
    ended = Counter((case.meanwhile, case.phase, case.state) for case in cases)
    never = sum(not case.deaths for case in cases)
    return "\n".join(
        [
            "Killed at",
            *(f"  {at:26} {how:22} {count:4}" for (at, how), count in sorted(died.items())),
            f"  {'at its end before the kill':49} {never:4}",
            "Ended",
            *(
                f"  then {then:8} {phase:16} {state:25} {count:4}"
                for (then, phase, state), count in sorted(ended.items())
            ),
        ]
    )
