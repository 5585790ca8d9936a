"""``python -m tests.matrix``: record cells, judge them, keep the verdicts. See docs/matrix.md."""

import argparse
import json
import logging
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from planner.storage.files import write_atomically
from tests.matrix.cells import Cell, cells, chosen
from tests.matrix.judging import document, judge_folder
from tests.matrix.recording import TRUTH_FILE, keep, record, running
from tests.matrix.report import misses, table

MOST_CELLS, MOST_RATE = 12, 3_000.0
"""Of a batch that runs side by side: groups, and messages a second in all."""

VERDICTS = Path("tests/matrix/verdicts.json")
PAGE = Path("docs/matrix.md")
BEGIN, END = "<!-- table -->", "<!-- end of table -->"


def main(arguments: Sequence[str]) -> int:
    """Record what is not recorded yet, judge everything that was asked for; 1 where an answer was wrong."""
    options = _options(arguments)
    wanted = chosen(options.only, cells())
    if options.list:
        print("\n".join(cell.name for cell in wanted))
        return 0
    logging.getLogger("planner.sources.live").setLevel(logging.ERROR)  # a group that has not come up yet is no news
    results = options.folder / "results.jsonl"
    if options.again:
        for cell in wanted:
            shutil.rmtree(options.folder / "samples" / cell.name, ignore_errors=True)
    if not options.judge:
        _record([cell for cell in wanted if not _is_recorded(options.folder, cell)], options)
    verdicts = _judged([cell for cell in wanted if _is_recorded(options.folder, cell)], options.folder, results)
    print("\n".join(table(verdicts)))
    wrong = [verdict["cell"] for verdict in verdicts if misses(verdict)]
    print(f"{len(verdicts) - len(wrong)} of {len(verdicts)} cells are right or honest.")
    if options.page:
        write_page(verdicts)
    return 1 if wrong else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the cells and end")
    parser.add_argument("--only", default="", help="comma-separated words: cells that have one in their name")
    parser.add_argument("--folder", type=Path, default=Path("work/matrix"), help="samples and results; goes on there")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long each cell is watched")
    parser.add_argument("--judge", action="store_true", help="record nothing: judge what is recorded again")
    parser.add_argument("--again", action="store_true", help="record cells that are recorded already, too")
    parser.add_argument("--page", action="store_true", help=f"write {VERDICTS} and the table in {PAGE}")
    return parser.parse_args(arguments)


def _place(folder: Path, cell: Cell) -> Path:
    return folder / "samples" / cell.name


def _is_recorded(folder: Path, cell: Cell) -> bool:
    return (_place(folder, cell) / TRUTH_FILE).exists()


def _record(left: Sequence[Cell], options: argparse.Namespace) -> None:
    """Record cells batch by batch; what is kept stays when this is stopped."""
    if not left:
        return
    with running(kafka=any(c.is_kafka for c in left), rocketmq=any(not c.is_kafka for c in left)) as groups:
        for number, batch in enumerate(batches := list(_batches(left)), start=1):
            print(f"batch {number} of {len(batches)}: {', '.join(cell.name for cell in batch)}", flush=True)
            for recorded in record(batch, groups, options.seconds):
                keep(options.folder / "samples", recorded)


def _batches(left: Sequence[Cell]) -> Iterator[list[Cell]]:
    """Yield what runs side by side, groups of few messages first: so most are recorded soon, in the fewest batches."""
    batch: list[Cell] = []
    for cell in sorted(left, key=lambda cell: cell.rate):
        if batch and (len(batch) == MOST_CELLS or sum(c.rate for c in batch) + cell.rate > MOST_RATE):
            yield batch
            batch = []
        batch.append(cell)
    if batch:
        yield batch


def _judged(recorded: Iterable[Cell], folder: Path, results: Path) -> list[dict[str, Any]]:
    verdicts = [document(judge_folder(_place(folder, cell))) for cell in recorded]
    write_atomically(results, "".join(f"{json.dumps(verdict)}\n" for verdict in verdicts))
    return verdicts


def write_page(verdicts: Sequence[dict[str, Any]]) -> None:
    """Keep the verdicts, merged into those that were kept, and renew the page's table from all of them."""
    kept = {one["cell"]: one for one in json.loads(VERDICTS.read_text())} if VERDICTS.exists() else {}
    kept.update({verdict["cell"]: verdict for verdict in verdicts})
    ordered = [kept[cell.name] for cell in cells() if cell.name in kept]
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in ordered)
    write_atomically(VERDICTS, f"[\n{lines}\n]\n")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    write_atomically(PAGE, "\n".join([f"{before}{BEGIN}", "", *table(ordered), "", f"{END}{after}"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
