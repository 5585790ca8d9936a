"""Bring a history that an earlier planner wrote to the present version."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every PySpark reader knows
from pyspark.sql.types import StringType, StructField, StructType

from spark_apps.common.folder import Folder
from spark_apps.common.history_folder import STATES_TABLE, Change
from spark_apps.common.parquet_files import read_parquet
from spark_apps.history.schemas import HISTORY
from spark_apps.history.transforms import SAMPLED, states_of_history

OF_VERSION_1 = "version1"
"""What the names of files begin with whose rows version 1 wrote."""


def upgrade(history: Folder) -> None:
    """Let version 1 (``day=.../hour=.../*.parquet``) become the present one; what it did not know is null.

    All at once or not at all, like every change.
    """
    days = [folder for folder in history.folders() if folder.name.startswith("day=")]
    change = Change(history)
    if days:
        _write(change, _version_1(history, days))
    change.delete(days)
    change.write_version()
    change.commit()


def _version_1(history: Folder, days: list[Folder]) -> DataFrame:
    columns = [field for field in HISTORY if field.name != "source"]
    schema = StructType([*columns, StructField("hour", StringType())])
    frame = read_parquet(days, schema, history)
    return frame.withColumn("source", F.lit(SAMPLED)).select(*HISTORY.names)


def _write(change: Change, rows: DataFrame) -> None:
    for day, system in sorted(rows.select("day", "system").distinct().collect()):
        of_day = rows.where((F.col("day") == day) & (F.col("system") == system)).drop("day", "system")
        change.write(of_day, "intervals", f"day={day}", f"system={system}", source=OF_VERSION_1)
    change.write(states_of_history(rows), STATES_TABLE, source=OF_VERSION_1)
