"""What both systems' draws of newcomers share: names of a given form, seeds, and intervals of what came of them."""

import hashlib
import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.model.snapshot import GroupSnapshot
from planner.simulation.outcome import Interval
from planner.text.words import counted

BAND = (0.05, 0.95)
"""The middle 90 % of all draws."""

FORECAST_DRAWS = 8
"""Of how many draws pauses and duplicates are forecast, each with its share of the trials."""

_LAST_NUMBER = re.compile(r"(.*?)(\d{1,9})(\D*)", re.DOTALL)
_POD_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of names that Kubernetes makes (``k8s.io/apimachinery/pkg/util/rand``)."""
_HEX = "0123456789abcdef"
_PLAIN = "0123456789abcdefghijklmnopqrstuvwxyz"


def seed_of_snapshot(snapshot: GroupSnapshot) -> int:
    """Return the seed of all draws on the group: of what the snapshot says of its time and clients."""
    content = "\n".join((snapshot.system, snapshot.cluster, snapshot.group, snapshot.at.isoformat(), *snapshot.clients))
    return int.from_bytes(hashlib.sha256(content.encode("utf-8", "replace")).digest()[:8], "big")


class Names:
    """Names that an application sets, and others of their form."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = sorted(set(names))

    @cached_property
    def series(self) -> tuple[str, int, str] | None:
        """What stands before and behind the number that alone distinguishes the names, and the highest number."""
        parts = [match.groups() for name in self.names if (match := _LAST_NUMBER.fullmatch(name))]
        around = {(before, behind) for before, _, behind in parts}
        if len(parts) < max(len(self.names), 2) or len(around) != 1:
            return None
        numbers = sorted(int(number) for _, number, _ in parts)
        ((before, behind),) = around
        return (before, numbers[-1], behind) if numbers[-1] - numbers[0] < 2 * len(numbers) else None

    @property
    def is_generated(self) -> bool:
        """True where the names are of one length and differ in several characters of one alphabet, as made ones do."""
        return self.series is None and len(self.names) > 1 and self._alphabet is not None

    @cached_property
    def _varying(self) -> list[int]:
        """The positions at which names of one length differ."""
        if len({len(name) for name in self.names}) != 1:
            return []
        return [position for position, signs in enumerate(zip(*self.names, strict=True)) if len(set(signs)) > 1]

    @cached_property
    def _alphabet(self) -> str | None:
        """The smallest usual alphabet of the characters that vary; ``None`` where too few do to be made by chance."""
        varying = self._varying
        if len(varying) < 3:
            return None
        signs = {name[position] for name in self.names for position in varying}
        return next((usual for usual in (_POD_ALPHABET, _HEX, _PLAIN) if signs <= set(usual)), None)

    def draw(self, random: np.random.Generator) -> str:
        """Return another name of the same form."""
        if (series := self.series) is not None:
            before, highest, behind = series
            return f"{before}{highest + 1 + int(random.integers(max(4 * len(self.names), 16)))}{behind}"
        like = self.names[int(random.integers(len(self.names)))]
        alphabet = self._alphabet or _POD_ALPHABET
        # A name that varies nowhere tells no form: its last five characters are as Kubernetes makes a pod's.
        positions = self._varying or range(max(len(like) - 5, 0), len(like))
        signs = list(like)
        for position in positions:
            signs[position] = alphabet[int(random.integers(len(alphabet)))]
        return "".join(signs)


def interval(values: NDArray[Any]) -> Interval:
    """Return the middle 90 %, bounds rounded outwards to values that were drawn: at least so many lie inside."""
    least, most = np.quantile(values, BAND[0], method="lower"), np.quantile(values, BAND[1], method="higher")
    return Interval(round(float(least), 6), round(float(most), 6))


def between(span: Interval, noun: str) -> str:
    """Return ``5–9 queues``, ``7 queues`` where both are the same."""
    least, most = int(span.p05), int(span.p95)
    return counted(most, noun) if least == most else f"{least}–{counted(most, noun)}"
