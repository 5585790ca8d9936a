"""The cells of the matrix: a covering design of what ordinary groups differ in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

KAFKA = ("kafka-java", "librdkafka")
ROCKETMQ = ("push-4.9.8", "push-5.5.0", "lite-pull", "pop")
CLIENTS = (*KAFKA, *ROCKETMQ)
SERVICE_MS = (5, 20, 50, 200)
QUEUES = (1, 4, 12)
LOADS = (0.5, 0.9, 1.2, 2.0, 5.0)
ARRIVALS = ("constant", "bursty")
COMMITS = {
    "kafka-java": ("poll", "auto", "each"),
    "librdkafka": ("poll", "auto", "each"),
    "push-4.9.8": ("auto",),
    "push-5.5.0": ("auto",),
    "lite-pull": ("auto", "poll"),
    "pop": ("each",),
}
"""How each client commits; a push consumer does so by itself, and who pops acknowledges each message."""

BATCHES = {"kafka-java": (500, 10), "librdkafka": (1, 500), "lite-pull": (10,)}
"""Messages of one poll, the default first; elsewhere there is nothing to choose."""

NO_CAUSE, SLOW_MEMBER, HOT_QUEUE, BLOCKED_QUEUE = "", "slow-member", "hot-queue", "blocked-queue"
SLOWER = 6
"""The slow member takes so many times as long for each message."""

HOT_SHARE = 0.6
"""Share of the arrivals that go to the hot queue."""

MOST_PER_MEMBER = 100.0
"""Messages per second: more from each of many groups would measure this machine instead of the group."""


@dataclass(frozen=True)
class Cell:
    """One group of the matrix: ``load`` is a share of what its members can do together."""

    client: str
    service_ms: int
    queues_per_member: int
    load: float
    commit: str
    arrivals: str = "constant"
    batch: int = 0
    cause: str = NO_CAUSE
    members: int = 3

    @cached_property
    def name(self) -> str:
        """A name that is a group, a topic and a folder as well."""
        parts = [
            self.client.replace(".", ""),
            f"{self.service_ms}ms",
            f"{self.queues_per_member}q",
            f"load{self.load * 100:.0f}",
            self.commit,
            *([f"b{self.batch}"] if self.batch else []),
            *([self.arrivals] if self.arrivals != "constant" else []),
            *([self.cause] if self.cause else []),
        ]
        return "-".join(parts)

    @property
    def is_kafka(self) -> bool:
        """True for a group of Kafka."""
        return self.client in KAFKA

    @property
    def is_shared(self) -> bool:
        """True where members share messages instead of queues."""
        return self.client == "pop"

    @property
    def queues(self) -> int:
        """Queues or partitions of its topic."""
        return self.members * self.queues_per_member

    @property
    def threads(self) -> int:
        """Threads of one member that work on messages: 20 by default where a member pushes, fewer for short ones."""
        if self.client not in ("push-4.9.8", "push-5.5.0", "pop"):
            return 1
        return max(1, min(20, int(MOST_PER_MEMBER * self.service_ms / 1000)))

    @property
    def capacity(self) -> float:
        """Messages per second of one member by its service time alone; of one that is not slow."""
        return self.threads * 1000.0 / self.service_ms

    @property
    def rate(self) -> float:
        """Messages per second that come in on average."""
        return self.load * self.capacity * self.members

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the arrivals that each queue gets."""
        if self.cause != HOT_QUEUE:
            return (1.0 / self.queues,) * self.queues
        rest = (1.0 - HOT_SHARE) / (self.queues - 1)
        return (HOT_SHARE, *(rest,) * (self.queues - 1))

    @property
    def backlog(self) -> float:
        """Messages that wait already when the watch begins: a minute's work where the load is too high."""
        return 60.0 * self.capacity * self.members if self.load > 1 else 0.0


def cells() -> tuple[Cell, ...]:
    """Return the design: each value meets each client, and pairs of values meet where they matter."""
    chosen: dict[str, Cell] = {}
    for cell in (*_first(), *_special(), *_covering()):
        chosen.setdefault(cell.name, cell)
    return tuple(chosen.values())


def _first() -> Iterator[Cell]:
    """The ordinary groups that this began with, one or two of each client."""
    yield _cell("kafka-java", 20, 4, 1.2)
    yield _cell("kafka-java", 20, 4, 0.5)
    yield _cell("kafka-java", 200, 4, 1.2)  # 100 s from poll to poll
    yield _cell("librdkafka", 20, 4, 1.2)
    yield _cell("push-5.5.0", 50, 4, 1.2)
    yield _cell("push-5.5.0", 50, 4, 0.5)
    yield _cell("push-4.9.8", 50, 4, 1.2)
    yield _cell("lite-pull", 20, 4, 1.2)
    yield _cell("pop", 50, 4, 1.2)


def _special() -> Iterator[Cell]:
    """Groups with a cause that more members do not heal."""
    for client in CLIENTS:
        yield _cell(client, 50, 4, 0.5, cause=SLOW_MEMBER)
        yield _cell(client, 50, 4, 0.8, cause=HOT_QUEUE)
        if client != "pop":  # a message that is popped and hangs blocks nothing: it becomes visible again elsewhere
            yield _cell(client, 50, 4, 0.5, cause=BLOCKED_QUEUE)


def _covering() -> Iterator[Cell]:
    """Every pair of (client, value), and load with service time, by walking each client's values out of step."""
    for number, client in enumerate(CLIENTS):
        commits, batches = COMMITS[client], BATCHES.get(client, (0,))
        for step, (service_ms, load) in enumerate(product(SERVICE_MS, LOADS)):
            if (step + number) % 2 and (load, service_ms) not in ((1.2, 5), (1.2, 200), (0.9, 20), (5.0, 20)):
                continue
            turn = step // 2 + number
            yield Cell(
                client,
                service_ms,
                QUEUES[turn % 3],
                load,
                commits[(turn + step // len(LOADS)) % len(commits)],
                ARRIVALS[int(turn % 4 == 3)],
                batches[int(turn % 5 in (2, 4)) % len(batches)],
            )


def _cell(client: str, service_ms: int, queues: int, load: float, cause: str = NO_CAUSE) -> Cell:
    batch = BATCHES.get(client, (0,))[0]
    return Cell(client, service_ms, queues, load, COMMITS[client][0], "constant", batch, cause)


def chosen(names: str, among: Sequence[Cell]) -> tuple[Cell, ...]:
    """Return the cells whose name has one of the comma-separated words in it; all for none."""
    words = [word.strip() for word in names.split(",") if word.strip()]
    return tuple(cell for cell in among if not words or any(word in cell.name for word in words))
