"""Print the report on the committed observations: ``python -m tests.conformance [--half check|calibration|all]``.

The check half is meant where none is named.
``--pictures <folder>`` draws forecast beside observation, one picture a system and figure. ``--page`` renews the tables
of ``docs/conformance.md``, which are of the check half.
"""

import argparse
from pathlib import Path

from tests.conformance.page import PAGE, TABLES, replace_table
from tests.conformance.picture import write_picture
from tests.conformance.report import MEASURES, compare, markdown
from tests.conformance.split import CALIBRATION, CHECK, of_half
from tests.conformance.store import all_records

ALL = "all"


def main() -> None:
    """Forecast every observed transition of a half again and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=(CHECK, CALIBRATION, ALL), default=CHECK)
    parser.add_argument("--system", help="kafka or rocketmq; both where it is absent")
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    if arguments.page and arguments.half != CHECK:
        parser.error(f"--page has tables of the check half, found --half {arguments.half}")
    records = [record for record in all_records() if arguments.system in {None, record.system}]
    chosen = records if arguments.half == ALL else of_half(records, arguments.half)
    print(f"{len(chosen)} of {len(records)} observed transitions ({arguments.half})\n")
    compared = [compare(record) for record in chosen]
    print(markdown(compared))
    for system in sorted({record.system for record in chosen}):
        mine = [one for one in compared if one.record.system == system]
        for name in (each for each in TABLES if arguments.page and each.partition(",")[0] == system):
            PAGE.write_text(replace_table(PAGE.read_text(encoding="utf-8"), name, mine), encoding="utf-8")
        for measure in MEASURES if arguments.pictures is not None else ():
            write_picture(mine, measure, arguments.pictures / f"{system}-{measure.removesuffix('_s')}.svg")


if __name__ == "__main__":
    main()
