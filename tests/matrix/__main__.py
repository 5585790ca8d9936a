"""``python -m tests.matrix``: record cells and judge them. See docs/matrix.md."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.matrix.cells import Cell, cells, chosen
from tests.matrix.recording import keep, record, running

MOST_CELLS, MOST_RATE = 12, 4_000.0
"""Of a batch that runs side by side: groups, and messages a second in all."""


def main(arguments: Sequence[str]) -> int:
    """Run the command line."""
    options = _options(arguments)
    wanted = chosen(options.only, cells())
    if options.list:
        for cell in wanted:
            print(cell.name)
        return 0
    left = [cell for cell in wanted if not (options.samples / cell.name / "truth.json").exists()]
    with running(kafka=any(c.is_kafka for c in left), rocketmq=any(not c.is_kafka for c in left)) as groups:
        for batch in _batches(left):
            print(f"recording {len(batch)} cells: {', '.join(cell.name for cell in batch)}", flush=True)
            for recorded in record(batch, groups, options.seconds):
                print(f"kept {keep(options.samples, recorded)}: {recorded.rates}", flush=True)
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the cells and end")
    parser.add_argument("--only", default="", help="comma-separated words: cells that have one in their name")
    parser.add_argument("--samples", type=Path, default=Path("work/matrix/samples"), help="where recorded cells are")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long each cell is watched")
    return parser.parse_args(arguments)


def _batches(left: Sequence[Cell]) -> Iterator[list[Cell]]:
    batch: list[Cell] = []
    for cell in left:
        if batch and (len(batch) == MOST_CELLS or sum(c.rate for c in batch) + cell.rate > MOST_RATE):
            yield batch
            batch = []
        batch.append(cell)
    if batch:
        yield batch


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
