"""``make fuzz``: damaged inputs against every reader; a line of figures for each, and every finding.

``CASES=1000``, ``ONLY=kafka`` and ``SEED=7`` choose; ``GROW=60`` adds to the kept corpora for so many seconds a reader.
"""

import argparse
import itertools
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.fuzz.growth import grow
from tests.fuzz.readers import NAMES, reader, run_named

_SIZE = 2_000
_SHOWN = 10


def main() -> int:
    """Return 1 where a reader did what it must not, else 0."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--cases", type=int, default=1_000_000, help="cases of each reader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", default="", help="words of readers' names, by commas")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="most seconds for a reader")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--grow", type=float, default=0.0, help="seconds of growth for each reader, instead of cases")
    asked = parser.parse_args()
    names = [name for name in NAMES if any(word in name for word in asked.only.split(","))]
    if asked.grow:
        for name in names:
            cases, added, arcs = grow(reader(name), asked.grow, asked.seed)
            print(f"{name}: {cases} cases, {added} inputs kept, {arcs} arcs known", flush=True)
        return 0
    wrong = sum([_fuzzed(name, asked) for name in names])
    print(f"{wrong} findings" if wrong else f"no finding in {len(names)} readers")
    return 1 if wrong else 0


def _fuzzed(name: str, asked: argparse.Namespace) -> int:
    start, last = time.monotonic(), asked.first + asked.cases
    parts = [range(first, min(first + _SIZE, last)) for first in range(asked.first, last, _SIZE)]
    counted: Counter[str] = Counter()
    problems: Counter[str] = Counter()
    reader(name)  # loaded once: the workers are forked
    with ProcessPoolExecutor(asked.workers, multiprocessing.get_context("fork")) as pool:
        waiting = iter(parts)
        first = itertools.islice(waiting, asked.workers * 2)
        running = [pool.submit(run_named, name, asked.seed, part) for part in first]
        while running:
            outcomes, findings = running.pop(0).result()
            counted += outcomes
            for finding in findings:
                problems[finding.problem] += 1
                if problems[finding.problem] == 1 and len(problems) <= _SHOWN:
                    print(finding, flush=True)
            if time.monotonic() - start < asked.seconds and (part := next(waiting, None)) is not None:
                running.append(pool.submit(run_named, name, asked.seed, part))
    figures = ", ".join(f"{outcome} {count}" for outcome, count in counted.most_common())
    took_s = time.monotonic() - start
    print(f"{name}: {counted.total()} cases with seed {asked.seed} in {took_s:.0f} s: {figures}", flush=True)
    for problem, count in problems.most_common():
        print(f"  {count} times {problem}")
    return problems.total()


if __name__ == "__main__":
    sys.exit(main())
