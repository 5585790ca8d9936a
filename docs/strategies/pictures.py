"""Draw the pictures and count the figures of docs/strategies.md: ``python docs/strategies/pictures.py``.

Everything is computed by the strategies themselves; a test fails when page or pictures no longer say what they compute.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean

sys.path.insert(0, str(Path(__file__).parents[2]))  # run from anywhere, installed or not

from planner.allocation.extra import SpecifiedMachine, Static, Vip
from planner.allocation.ordering import java_sorted, sorted_queues
from planner.allocation.rocketmq import (
    Averagely,
    AveragelyByCircle,
    Config,
    ConsistentHash,
    MachineRoom,
    MachineRoomNearby,
)
from planner.allocation.strategy import NOBODY, Strategy, holdings_of
from planner.model.queues import MessageQueue

HERE = Path(__file__).parent
PAGE = HERE.parent / "strategies.md"
START, END = "<!-- figures, written by docs/strategies/pictures.py -->", "<!-- end of figures -->"

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
LIGHT = ("#e69f00", "#cc79a7", "#56b4e9")
NOBODYS, INK, PAPER, MOVED = "#ffffff", "#1a1a1a", "#ffffff", "#d00000"
CELL, GAP, LEFT, TOP = 34, 4, 150, 44

ROOMS = {"r1@a": "r1", "r2@b": "r2"}


@dataclass(frozen=True)
class Scene:
    """One picture: a strategy, its clients before and after, and the sentence under it."""

    name: str
    strategy: Strategy
    before: tuple[str, ...]
    after: tuple[str, ...]
    caption: str


def _queues(per_broker: int) -> list[MessageQueue]:
    return [MessageQueue("orders", broker, number) for broker in ROOMS for number in range(per_broker)]


QUEUES = _queues(8)
FOUR = ("10.0.0.1@a", "10.0.0.2@b", "10.0.0.3@c", "10.0.0.4@d")
FIVE = (*FOUR, "10.0.0.5@e")
_CLIENT_ROOMS = dict(zip(FIVE, ("r1", "r1", "r1", "r1", "r2"), strict=True))

SCENES = (
    Scene("AVG", Averagely(), FOUR, FIVE, "A fifth client that sorts last."),
    Scene("AVG_BY_CIRCLE", AveragelyByCircle(), FOUR, FIVE, "A fifth client that sorts last."),
    Scene("CONSISTENT_HASH", ConsistentHash(), FOUR, FIVE, "A fifth client takes its part; nothing else moves."),
    Scene(
        "CONFIG",
        Config({client: QUEUES[place * 4 : place * 4 + 4] for place, client in enumerate(FOUR[:3])}),
        FOUR[:2],
        FOUR[:3],
        "The third client has a list: it alone takes these queues. The last four are on nobody's list.",
    ),
    Scene(
        "MACHINE_ROOM",
        MachineRoom(frozenset({"r1"})),
        FOUR[:3],
        FOUR,
        "Room r1 only. The remainder comes from the tail; nobody consumes room r2.",
    ),
    Scene(
        "MACHINE_ROOM_NEARBY",
        MachineRoomNearby(Averagely(), ROOMS, _CLIENT_ROOMS),
        FOUR,
        FIVE,
        "Room r2 has no client, so all share it; then one starts there and takes all of it.",
    ),
    Scene(
        "VIP",
        Vip(frozenset(QUEUES[:4]), frozenset({"v"})),
        ("10.0.0.1@a", "10.0.0.2@b", "10.0.0.3@c"),
        ("10.0.0.1@a", "10.0.0.2@b", "10.0.0.3@c", "10.0.0.9@v"),
        "The VIP client v starts and takes the four VIP queues; nothing else moves.",
    ),
    Scene(
        "SPECIFIED_MACHINE",
        SpecifiedMachine(frozenset({"10.0.0.1", "10.0.0.2"})),
        FOUR[:2],
        FOUR[:3],
        "A client on a host that is not named idles; nothing moves.",
    ),
    Scene(
        "STATIC",
        Static({queue: "abcd"[place // 4] for place, queue in enumerate(QUEUES)}),
        FOUR[:3],
        FOUR,
        "The queues of d are spread while it is away, and return to it.",
    ),
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
    return HERE / f"{scene.name.lower()}.svg"


def picture(scene: Scene) -> str:
    """Return the SVG: queues as cells in the colour of their owner, before and after; what moved has a frame."""
    rows = [owners_by_name(scene.strategy, clients) for clients in (scene.before, scene.after)]
    colour_of = {client: COLOURS[place] for place, client in enumerate(java_sorted(set(scene.before + scene.after)))}
    width = LEFT + len(QUEUES) * (CELL + GAP) + 24
    parts = [*_header(scene, width)]
    for place, (owners, clients) in enumerate(zip(rows, (scene.before, scene.after), strict=True)):
        top = TOP + 24 + place * (CELL + 30)
        parts.append(_text(16, top + 22, f"{len(clients)} clients"))
        for column, owner in enumerate(owners):
            moved = bool(place) and owner != rows[0][column]
            parts += _cell(LEFT + column * (CELL + GAP), top, owner, colour_of, moved)
    moves = sum(1 for old, new in zip(*rows, strict=True) if old != new)
    parts.append(_text(16, TOP + 24 + 2 * (CELL + 30) + 4, f"{moves} of {len(QUEUES)} queues move. {scene.caption}"))
    return "\n".join([*parts, "</svg>", ""])


def owners_by_name(strategy: Strategy, clients: Sequence[str]) -> list[str | None]:
    """Return the owner's id of each of the picture's queues."""
    return [None if owner == NOBODY else clients[owner] for owner in strategy.owners(QUEUES, clients)]


def _header(scene: Scene, width: int) -> Iterator[str]:
    height = TOP + 24 + 2 * (CELL + 30) + 20
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="14" role="img" aria-label="{scene.name}: {scene.caption}">'
    )
    yield f'<rect width="{width}" height="{height}" fill="{PAPER}"/>'
    yield f'<text x="16" y="26" font-size="17" font-weight="bold" fill="{INK}">{scene.name}</text>'
    for column, queue in enumerate(QUEUES):
        x = LEFT + column * (CELL + GAP) + CELL / 2
        yield f'<text x="{x:g}" y="{TOP + 12}" text-anchor="middle" font-size="11" fill="{INK}">{_label(queue)}</text>'


def _label(queue: MessageQueue) -> str:
    return f"{queue.broker.split('@')[0]}·{queue.queue_id}"


def _cell(x: int, y: int, owner: str | None, colour_of: dict[str, str], moved: bool) -> Iterator[str]:
    fill = NOBODYS if owner is None else colour_of[owner]
    frame = f'stroke="{MOVED}" stroke-width="4"' if moved else f'stroke="{INK}" stroke-width="1"'
    dash = ' stroke-dasharray="3 3"' if owner is None and not moved else ""
    yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" rx="4" fill="{fill}" {frame}{dash}/>'
    if owner is not None:
        name = owner.partition("@")[2]
        place = f'x="{x + CELL / 2:g}" y="{y + 23}" text-anchor="middle"'
        ink = INK if fill in LIGHT else PAPER
        yield f'<text {place} font-weight="bold" fill="{ink}">{name}</text>'


def _text(x: int, y: int, text: str) -> str:
    return f'<text x="{x}" y="{y}" fill="{INK}">{text}</text>'


TRIALS, CLIENTS, PER_BROKER = 400, 8, 16


def figures() -> str:
    """Return the table of measured moves and balance."""
    lines = [
        "| strategy | one joins: queues that move | one leaves | most queues of one client, even share 4 |",
        "|---|---|---|---|",
    ]
    for name, make in MEASURED.items():
        joins, leaves, shares = zip(*(_trial(make, seed) for seed in range(TRIALS)), strict=True)
        lines.append(f"| `{name}` | {_spread(joins)} | {_spread(leaves)} | {_spread(shares)} |")
    return "\n".join(lines)


def _trial(make: Callable[[Sequence[str], Random], Strategy], seed: int) -> tuple[int, int, int]:
    """Return moved on a join, moved on a leave, and the largest share, for clients with random addresses."""
    random = Random(seed)  # noqa: S311 - draws addresses
    hosts = random.sample(range(1, 250), CLIENTS + 1)
    everyone = [f"10.0.0.{host}@{'abcdefghi'[place]}" for place, host in enumerate(hosts)]
    strategy = make(everyone, random)
    present, joined, left = everyone[:CLIENTS], everyone, everyone[1:CLIENTS]
    before = _owners(strategy, present)
    sizes = [list(before.values()).count(client) for client in present]
    return _moved(before, _owners(strategy, joined)), _moved(before, _owners(strategy, left)), max(sizes)


def _owners(strategy: Strategy, clients: Sequence[str]) -> dict[MessageQueue, str]:
    queues, present = sorted_queues(_queues(PER_BROKER)), java_sorted(clients)
    held = holdings_of(strategy, queues, present)
    return {queues[pick]: present[holder] for holder, pick in zip(held.holders, held.picks, strict=True)}


def _moved(before: dict[MessageQueue, str], after: dict[MessageQueue, str]) -> int:
    return sum(before.get(queue) != after.get(queue) for queue in {*before, *after})


def _spread(values: Sequence[int]) -> str:
    return f"{mean(values):.1f} ({min(values)} to {max(values)})"


def _rooms(clients: Sequence[str]) -> dict[str, str]:
    return {client: ("r1", "r2")[place % 2] for place, client in enumerate(clients)}


def _configured(clients: Sequence[str], _: Random) -> Config:
    queues = _queues(PER_BROKER)
    return Config({client: queues[place::CLIENTS] for place, client in enumerate(clients[:CLIENTS])})


MEASURED: dict[str, Callable[[Sequence[str], Random], Strategy]] = {
    "AVG": lambda *_: Averagely(),
    "AVG_BY_CIRCLE": lambda *_: AveragelyByCircle(),
    "CONSISTENT_HASH": lambda *_: ConsistentHash(),
    "CONSISTENT_HASH, 200 virtual nodes": lambda *_: ConsistentHash(200),
    "CONFIG": _configured,
    "MACHINE_ROOM, both rooms": lambda *_: MachineRoom(frozenset({"r1", "r2"})),
    "MACHINE_ROOM_NEARBY-AVG": lambda clients, _: MachineRoomNearby(Averagely(), ROOMS, _rooms(clients)),
    "VIP, 4 queues and 2 clients": lambda *_: Vip(frozenset(_queues(2)), frozenset("ab")),
    "SPECIFIED_MACHINE, 4 hosts": lambda clients, _: SpecifiedMachine(
        frozenset(client.partition("@")[0] for client in clients[:4])
    ),
    "STATIC, all reserved": lambda *_: Static(
        {queue: "abcdefgh"[place % CLIENTS] for place, queue in enumerate(_queues(PER_BROKER))}
    ),
}

if __name__ == "__main__":
    main()
