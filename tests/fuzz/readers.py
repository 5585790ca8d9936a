"""Every reader that is fuzzed, by name; its module is loaded when it is asked for, as some take seconds."""

from collections import Counter
from importlib import import_module
from typing import Final

from tests.fuzz.engine import Finding, Reader, run

NAMES: Final[dict[str, str]] = {
    **dict.fromkeys(("rocketmq", "fastjson", "kafka wire", "scram", "prometheus"), "brokers"),
    **dict.fromkeys(("sample", "snapshot", "calibration record", "metric history", "outcomes"), "documents"),
    **dict.fromkeys(("capture header", "capture", "reading", "plan", "plan file", "yaml", "policy"), "documents"),
    **dict.fromkeys(("allocate request", "forecast request", "backtest scenario", "migration request"), "documents"),
    **dict.fromkeys(("watch event", "kubernetes objects"), "cluster"),
    "airflow form": "forms",
    **dict.fromkeys(("history version", "history journal", "history rows", "parquet footer"), "lag_history"),
}
"""Reader -> module below ``tests.fuzz`` that has it in ``READERS``."""


def reader(name: str) -> Reader:
    """Return the reader of that name."""
    readers: tuple[Reader, ...] = import_module(f"tests.fuzz.{NAMES[name]}").READERS
    return next(one for one in readers if one.name == name)


def run_named(name: str, seed: int, numbers: range) -> tuple[Counter[str], list[Finding]]:
    """Run cases of the reader of that name: readers themselves do not travel between processes."""
    return run(reader(name), seed, numbers)
