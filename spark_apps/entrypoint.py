"""What Spark's Kubernetes master starts in an image: ``driver ARG...`` or ``executor``; anything else is run as it is.

Spark passes all that an executor needs in environment variables (``SPARK_EXECUTOR_ID`` and the like), and a
driver its bind address; see spark.apache.org/docs/latest/running-on-kubernetes.html. Exits with 2 and one
sentence where one of them is missing, and for a command that the image does not have.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

EXECUTOR = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
EXECUTOR_FLAGS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
JAVA_OPTION = re.compile(r"SPARK_JAVA_OPT_(\d+)")


class MissingError(Exception):
    """A variable that Spark sets is not there."""


def command(arguments: Sequence[str], environment: Mapping[str, str], spark: Path) -> list[str]:
    """Return the command that replaces this process; raises ``MissingError``."""
    match arguments:
        case ["executor"]:
            return executor(environment, spark)
        case ["driver"]:
            raise MissingError("driver was given no application, expected what spark-submit takes")
        case ["driver", *options]:
            address = _require(environment, "SPARK_DRIVER_BIND_ADDRESS")
            bind = ["--conf", f"spark.driver.bindAddress={address}", "--deploy-mode", "client"]
            return [str(spark / "bin" / "spark-submit"), *bind, *options]
        case []:
            raise MissingError("no argument was given, expected driver, executor, or a command")
        case _:
            return list(arguments)


def executor(environment: Mapping[str, str], spark: Path) -> list[str]:
    """Return the command of one executor; raises ``MissingError``."""
    memory = _require(environment, "SPARK_EXECUTOR_MEMORY")
    flags = [word for flag, name in EXECUTOR_FLAGS.items() for word in (flag, _require(environment, name))]
    before = [environment.get(name, "") for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "SPARK_CLASSPATH")]
    paths = [*before, str(spark / "jars" / "*"), environment.get("SPARK_EXTRA_CLASSPATH", "")]
    class_path = os.pathsep.join(filter(None, paths))
    java = Path(environment["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in environment else Path("java")
    options = java_options(environment)
    return [str(java), *options, f"-Xms{memory}", f"-Xmx{memory}", "-cp", class_path, EXECUTOR, *flags]


def java_options(environment: Mapping[str, str]) -> list[str]:
    """Return the values of ``SPARK_JAVA_OPT_<n>`` by their numbers."""
    numbered = {
        int(matched[1]): value for name, value in environment.items() if (matched := JAVA_OPTION.fullmatch(name))
    }
    return [numbered[number] for number in sorted(numbered)]


def _require(environment: Mapping[str, str], name: str) -> str:
    if name not in environment:
        raise MissingError(f"{name} is not set: Spark's Kubernetes master sets it in the pods that it makes")
    return environment[name]


def main() -> None:
    """Become the command."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.submodule_search_locations
    spark = Path(spec.submodule_search_locations[0])
    try:
        words = command(sys.argv[1:], os.environ, spark)
        os.execvpe(words[0], words, {**os.environ, "SPARK_HOME": str(spark)})  # noqa: S606  to become it is the point
    except MissingError as error:
        why = str(error)
    except OSError as error:
        why = f"{words[0]} cannot be run ({error.strerror}): expected driver, executor, or a command of this image"
    sys.stderr.write(f"entrypoint: {why}\n")
    sys.exit(2)


if __name__ == "__main__":
    main()
