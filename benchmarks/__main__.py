"""Run every benchmark, or those named on the command line: ``python -m benchmarks path allocation_kafka``."""

import importlib
import pkgutil
import sys
from pathlib import Path


def main() -> None:
    """Run the benchmarks one after the other; each module has a ``main`` that prints its own lines."""
    known = sorted(
        module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]) if module.name[0] != "_"
    )
    chosen = sys.argv[1:] or known
    for name in chosen:
        if name not in known:
            sys.exit(f"benchmarks: {name} is not one of {', '.join(known)}")
    for name in chosen:
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
