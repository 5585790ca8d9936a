"""Print the report on the committed observations: ``python -m tests.conformance [--half check|calibration|all]``.

The check half is meant where none is named.
``--pictures <folder>`` draws forecast against observation, one picture a system and figure.
"""

import argparse
from pathlib import Path

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
    arguments = parser.parse_args()
    records = [record for record in all_records() if arguments.system in {None, record.system}]
    chosen = records if arguments.half == ALL else of_half(records, arguments.half)
    print(f"{len(chosen)} of {len(records)} observed transitions ({arguments.half})\n")
    compared = [compare(record) for record in chosen]
    print(markdown(compared))
    if arguments.pictures is not None:
        for system in sorted({record.system for record in chosen}):
            mine = [one for one in compared if one.record.system == system]
            for measure in MEASURES:
                write_picture(mine, measure, arguments.pictures / f"{system}-{measure.removesuffix('_s')}.svg")


if __name__ == "__main__":
    main()
