"""How long the whole test suite takes: about twenty minutes, so name the other benchmarks when you want only those."""

from benchmarks.path import ROOT, report, seconds


def main() -> None:
    """Print the seconds of ``make test`` with nothing skipped; leave with its output when it fails."""
    report("make test, REQUIRE_CLUSTERS=1", seconds(["make", "test"], ROOT, {"REQUIRE_CLUSTERS": "1"}))


if __name__ == "__main__":
    main()
