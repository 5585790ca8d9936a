"""Draw the pictures and count the figures of docs/strategies-kafka.md: ``python docs/strategies-kafka/pictures.py``.

Everything is computed by the assignors themselves; a test fails when page or pictures no longer say what they compute.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # run from anywhere, installed or not

from planner.documents.allocation import answer

HERE = Path(__file__).parent
PAGE = HERE.parent / "strategies-kafka.md"
START, END = "<!-- figures, written by docs/strategies-kafka/pictures.py -->", "<!-- end of figures -->"

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7")
INK, PAPER, MOVED = "#1a1a1a", "#ffffff", "#d00000"
CELL, GAP, LEFT, TOP, STEP = 38, 4, 190, 44, 64

Document = dict[str, Any]
Partition = tuple[str, int]
Owners = dict[Partition, str]

TOPICS = {"t": 7, "u": 7}
MEMBERS = ("c0", "c1", "c2", "c3")


@dataclass(frozen=True)
class Scene:
    """One picture: an assignor, and the sentence under it."""

    strategy: str
    caption: str


SCENES = (
    Scene("range", "Blocks shift; c0 owns the extra partition of both topics."),
    Scene("roundrobin", "The cards are dealt anew."),
    Scene("sticky", "The newcomer takes its share, the highest numbers; nothing else moves."),
    Scene("cooperative-sticky", "As sticky, in two rounds: what moves belongs to nobody in between."),
    Scene("uniform", "The newcomer takes its share; nothing else moves."),
    Scene("range-server", "The same blocks as range, handed over one by one."),
    Scene("random", "One draw of many; nothing is kept but by chance."),
)


def main() -> None:
    """Write every picture and the table of figures."""
    for scene in SCENES:
        picture_path(scene).write_text(picture(scene))
    page = PAGE.read_text()
    head, _, rest = page.partition(START)
    PAGE.write_text(f"{head}{START}\n{figures()}\n{END}{rest.partition(END)[2]}")


def picture_path(scene: Scene) -> Path:
    """Return where the picture belongs."""
    return HERE / f"{scene.strategy}.svg"


def picture(scene: Scene) -> str:
    """Return the SVG: partitions as cells in the colour of their owner, before and after; what moved has a frame."""
    rows = list(_rows(scene.strategy))
    before, after = rows[0][1], rows[-1][1]
    height = TOP + 24 + len(rows) * STEP + 14
    parts = list(_header(scene, height))
    for place, (label, owners) in enumerate(rows):
        top = TOP + 24 + place * STEP
        parts.append(_text(16, top + 24, label))
        for column, partition in enumerate(_partitions()):
            owner = owners.get(partition)
            parts += _cell(LEFT + column * (CELL + GAP), top, owner, is_moved=owner != before[partition])
    moves = sum(before[partition] != after[partition] for partition in before)
    parts.append(_text(16, height - 12, f"{moves} of {len(before)} partitions move. {scene.caption}"))
    return "\n".join([*parts, "</svg>", ""])


def _rows(strategy: str) -> Iterator[tuple[str, Owners]]:
    """Yield three members, four members, and for the cooperative assignor the round in between."""
    before = owners_of(request(strategy, TOPICS, MEMBERS[:3]))
    yield "3 members", before
    joined = request(strategy, TOPICS, MEMBERS, before)
    if strategy == "cooperative-sticky":
        yield "4 members, first round", owners_of({**joined, "options": {"cooperative_round": "first"}})
    if strategy == "random":
        joined["options"] = {"seed": 1}
    yield "4 members, settled" if strategy == "cooperative-sticky" else "4 members", owners_of(joined)


def request(
    strategy: str, topics: dict[str, int], members: Sequence[str], owners: Owners | None = None, *, mixed: bool = False
) -> Document:
    """Return the request document; in a mixed group every other member leaves out the last topic."""
    names = sorted(topics)
    return {
        "system": "kafka",
        "strategy": strategy,
        "partitions": topics,
        "members": [
            {
                "id": member,
                "topics": names[:-1] if mixed and place % 2 else names,
                "owned": [list(one) for one, owner in (owners or {}).items() if owner == member],
                "generation": 1 if owners else None,
            }
            for place, member in enumerate(members)
        ],
    }


def owners_of(document: Document) -> Owners:
    """Return who owns each partition."""
    assignments = answer(document)["assignments"]
    return {partition: member for member, got in assignments.items() for partition in got}


def _partitions() -> list[Partition]:
    return [(topic, number) for topic, count in TOPICS.items() for number in range(count)]


def _header(scene: Scene, height: int) -> Iterator[str]:
    width = LEFT + len(_partitions()) * (CELL + GAP) + 16
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="14" role="img" aria-label="{scene.strategy}: {scene.caption}">'
    )
    yield f'<rect width="{width}" height="{height}" fill="{PAPER}"/>'
    yield f'<text x="16" y="26" font-size="17" font-weight="bold" fill="{INK}">{scene.strategy}</text>'
    for column, (topic, number) in enumerate(_partitions()):
        x = LEFT + column * (CELL + GAP) + CELL / 2
        yield f'<text x="{x:g}" y="{TOP + 12}" text-anchor="middle" font-size="11" fill="{INK}">{topic}-{number}</text>'


def _cell(x: int, y: int, owner: str | None, *, is_moved: bool) -> Iterator[str]:
    fill = PAPER if owner is None else COLOURS[MEMBERS.index(owner)]
    frame = f'stroke="{MOVED}" stroke-width="4"' if is_moved else f'stroke="{INK}" stroke-width="1"'
    yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" rx="4" fill="{fill}" {frame}/>'
    place = f'x="{x + CELL / 2:g}" y="{y + 24}" text-anchor="middle"'
    ink = INK if owner is None else PAPER
    yield f'<text {place} font-weight="bold" fill="{ink}">{owner or "–"}</text>'


def _text(x: int, y: int, text: str) -> str:
    return f'<text x="{x}" y="{y}" fill="{INK}">{text}</text>'


TRIALS, CLIENTS = 200, 8
MEASURED = {"a": 20, "b": 20, "c": 20}


def figures() -> str:
    """Return the table of measured moves and balance."""
    lines = [
        "| assignor | one joins: partitions that move | one leaves | most of one member | least of one member |",
        "|---|---|---|---|---|",
    ]
    for mixed in (False, True):
        for scene in SCENES:
            columns = zip(*(_trial(scene.strategy, seed, mixed=mixed) for seed in range(TRIALS)), strict=True)
            name = f"`{scene.strategy}`" + (", mixed" if mixed else "")
            lines.append(" | ".join((f"| {name}", *map(_spread, columns))) + " |")
    return "\n".join(lines)


def _trial(strategy: str, seed: int, *, mixed: bool) -> tuple[int, int, int, int]:
    """Return moved on a join, moved on a leave, largest and smallest share, for members with random ids."""
    random = Random(seed)  # noqa: S311 - draws ids
    everyone = [f"orders-{random.getrandbits(64):016x}" for _ in range(CLIENTS + 1)]
    present = everyone[:CLIENTS]
    before = owners_of(_seeded(request(strategy, MEASURED, present, mixed=mixed), seed))
    loads = [list(before.values()).count(member) for member in present]
    joined = owners_of(_seeded(request(strategy, MEASURED, everyone, before, mixed=mixed), seed + TRIALS))
    stay = [member for member in present if member != present[-1]]
    left = owners_of(_seeded(request(strategy, MEASURED, stay, before, mixed=mixed), seed + TRIALS))
    return _moved(before, joined), _moved(before, left), max(loads), min(loads)


def _seeded(document: Document, seed: int) -> Document:
    return {**document, "options": {"seed": seed}} if document["strategy"] == "random" else document


def _moved(before: Owners, after: Owners) -> int:
    return sum(before[partition] != after.get(partition) for partition in before)


def _spread(values: Sequence[int]) -> str:
    return f"{mean(values):.1f} ({min(values)} to {max(values)})"


if __name__ == "__main__":
    main()
