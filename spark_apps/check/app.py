"""Have one row made by an executor, which imports the planner: does Spark run our apps here?

    spark-submit spark_apps/check/app.py --answer FILE

Writes into FILE, on the driver's machine, the interpreter of the executor and its versions as JSON.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from planner.storage.files import write_atomically
from spark_apps.common.errors import finish
from spark_apps.common.session import session

if TYPE_CHECKING:
    import pandas as pd


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answer", type=Path, required=True, help="file to write")
    answer = parser.parse_args().answer
    with session("check") as spark:
        (row,) = (
            spark.range(1).mapInPandas(describe_executor, "interpreter string, python string, pandas string").collect()
        )
    write_atomically(answer, json.dumps(row.asDict()))


def describe_executor(frames: "Iterator[pd.DataFrame]") -> "Iterator[pd.DataFrame]":
    """Yield for each row what the Python is that works on it; what the pipeline's functions import is imported."""
    import platform  # noqa: PLC0415  all of it on the executor
    import sys  # noqa: PLC0415

    import pandas as pd  # noqa: PLC0415
    import pyarrow as pa  # noqa: F401, PLC0415

    import planner.pipeline  # noqa: F401, PLC0415

    for frame in frames:
        row = {"interpreter": sys.executable, "python": platform.python_version(), "pandas": pd.__version__}
        yield pd.DataFrame([row] * len(frame))


if __name__ == "__main__":
    finish(main)
