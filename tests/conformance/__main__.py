"""Print the report on the committed observations: ``python -m tests.conformance [--half check|calibration|all]``."""

import argparse

from tests.conformance.report import compare, markdown
from tests.conformance.split import CALIBRATION, CHECK, of_half
from tests.conformance.store import all_records

ALL = "all"


def main() -> None:
    """Forecast every observed transition of a half again and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=(CHECK, CALIBRATION, ALL), default=CHECK)
    arguments = parser.parse_args()
    records = all_records()
    chosen = records if arguments.half == ALL else of_half(records, arguments.half)
    print(f"{len(chosen)} of {len(records)} observed transitions ({arguments.half})\n")
    print(markdown([compare(record) for record in chosen]))


if __name__ == "__main__":
    main()
