"""Dockerfiles, read."""

import json
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Instruction:
    """One instruction, its continued lines joined; ``line`` is where it begins."""

    keyword: str
    text: str
    line: int


@dataclass(frozen=True)
class Stage:
    """A FROM and what follows."""

    base: str
    name: str
    instructions: tuple[Instruction, ...]

    def all(self, keyword: str) -> list[str]:
        return [one.text for one in self.instructions if one.keyword == keyword]


@dataclass(frozen=True)
class Dockerfile:
    """Arguments before the first FROM, and the stages; the last one is the image."""

    arguments: tuple[str, ...]
    stages: tuple[Stage, ...]

    @property
    def image(self) -> Stage:
        return self.stages[-1]

    def entry_point(self) -> list[str]:
        return list(json.loads(self.image.all("ENTRYPOINT")[-1]))


def instructions(text: str) -> Iterator[Instruction]:
    """Yield what stands in a Dockerfile; comments are left out, inside of continued lines too."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if not line.lstrip().startswith("#")]
    while lines:
        number, line = lines.pop(0)
        while line.endswith("\\") and lines:
            line = line[:-1].rstrip() + " " + lines.pop(0)[1].strip()
        if line.strip():
            keyword, _, rest = line.strip().partition(" ")
            yield Instruction(keyword, rest.strip(), number)


def parse(text: str) -> Dockerfile:
    """Return a Dockerfile's stages."""
    found = list(instructions(text))
    starts = [index for index, one in enumerate(found) if one.keyword == "FROM"]
    stages = []
    for start, end in zip(starts, [*starts[1:], len(found)], strict=True):
        base, _, name = found[start].text.partition(" AS ")
        stages.append(Stage(base, name, tuple(found[start + 1 : end])))
    return Dockerfile(tuple(one.text for one in found[: starts[0]]), tuple(stages))


def sources(copy: str) -> list[str]:
    """Return what a COPY takes from the build context; nothing for one from another stage."""
    words = copy.split()
    return [] if words[0].startswith("--from=") else words[:-1]
