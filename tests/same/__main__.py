"""``make same``: whether every answer is what it was, by hashes that the repository keeps in ``hashes.txt``.

Compare before and after a change of names or places; a change of answers keeps the new hashes with ``--keep`` in a
commit of its own. Which answers differ is named where the last equal run left its list in ``work/same``.
``--one-in 10`` asks a tenth only, compared with that list; ``--show GROUP`` prints the answers of a group, to compare
two checkouts.
"""

import argparse
import hashlib
import json
import multiprocessing
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from tests.same.answers import questions
from tests.same.commands import ROOT

KEPT = Path(__file__).with_name("hashes.txt")
LIST = ROOT / "work" / "same" / "answers.json"
PROCESSES, DIGITS, MOST_NAMED = 2, 16, 20

Hashes = dict[str, dict[str, str]]
"""The hash of each answer, by group and name."""

_ASKED = list(questions())


def main() -> int:
    """Ask everything, compare, and return 1 when anything differs."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--keep", action="store_true", help="keep the hashes of now")
    options.add_argument("--one-in", type=int, default=1, metavar="N", help="ask one in N only")
    options.add_argument("--show", metavar="GROUP", help="print the answers of this group")
    options.add_argument("--list", type=Path, default=LIST, metavar="FILE", help="the list of an equal run")
    chosen = options.parse_args()
    if chosen.show is not None:
        return _show(chosen.show)
    listed = _listed(chosen.list)
    now = _ask(chosen.one_in)
    if chosen.one_in > 1:
        return _say({group: _changed(listed.get(group, {}), hashes, True) for group, hashes in now.items()}, now)
    lines = {group: f"{len(hashes):6} {_digest(hashes)}  {group}" for group, hashes in sorted(now.items())}
    if chosen.keep:
        KEPT.write_text("\n".join([*lines.values(), ""]), encoding="utf-8")
    kept = {line.split("  ")[-1]: line for line in KEPT.read_text(encoding="utf-8").splitlines()}
    wrong = [group for group in sorted({*kept, *lines}) if kept.get(group) != lines.get(group)]
    if not wrong:
        chosen.list.parent.mkdir(parents=True, exist_ok=True)
        chosen.list.write_text(json.dumps(now), encoding="utf-8")
    return _say({group: _named(group, listed, now, kept) for group in wrong}, now)


def _listed(path: Path) -> Hashes:
    """Return the list of the last equal run; none is an empty one."""
    hashes: Hashes = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return hashes


def _ask(one_in: int) -> Hashes:
    """Return the hashes of every answer, or of those to one question in so many."""
    hashes: defaultdict[str, dict[str, str]] = defaultdict(dict)
    numbers = range(0, len(_ASKED), one_in)
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        for number, answers in zip(numbers, pool.imap(_answers, numbers, chunksize=4), strict=True):
            group = hashes[_ASKED[number].group]
            if several := answers.keys() & group.keys():
                raise ValueError(f"{_ASKED[number].group}: several answers are named {min(several)}; name each once")
            group.update(answers)
    return dict(hashes)


def _answers(number: int) -> dict[str, str]:
    return {name: hashlib.sha256(text.encode()).hexdigest()[:DIGITS] for name, text in _ASKED[number].ask()}


def _digest(hashes: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(sorted(hashes.items())).encode()).hexdigest()[:DIGITS]


def _named(group: str, listed: Hashes, now: Hashes, kept: Mapping[str, str]) -> Sequence[str]:
    """Return which answers of a group differ, or why that is not known."""
    before = listed.get(group)
    if group not in kept or group not in now:
        return ["the whole group is new" if group in now else "the whole group is gone"]
    if before is None or _digest(before) not in kept[group]:
        return [f"run `make same` on the commit whose hashes are kept, with the list of that run: {LIST.name}"]
    return _changed(before, now[group], False)


def _changed(before: Mapping[str, str], now: Mapping[str, str], is_part: bool) -> Sequence[str]:
    names = sorted(now if is_part else {*before, *now})
    return [name for name in names if before.get(name) != now.get(name)]


def _say(changed: Mapping[str, Sequence[str]], now: Hashes) -> int:
    for group, names in changed.items():
        for name in islice(names, MOST_NAMED):
            print(f"differs  {group}: {name}")
        if len(names) > MOST_NAMED:
            print(f"differs  {group}: {len(names) - MOST_NAMED} more")
    count = sum(map(len, now.values()))
    groups = sum(bool(names) for names in changed.values())
    print(f"{count} answers in {len(now)} groups: {f'{groups} groups differ' if groups else 'all as they were'}")
    return int(groups > 0)


def _show(group: str) -> int:
    for question in _ASKED:
        for name, text in question.ask() if question.group == group else ():
            print(f"== {question.group}: {name}\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
