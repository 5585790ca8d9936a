"""The Dockerfiles against our rules, each of which is seen to catch what it is for; and the scripts that they run."""

import subprocess
from pathlib import Path

import pytest

from spark_apps.entrypoint import MissingError, command
from tests.unit.packaging.dockerfile import Dockerfile, parse, sources
from tests.unit.packaging.rules import RULES, Rule

ROOT = Path(__file__).parents[3]
IMAGES = ("controller", "spark")
DIGEST = "sha256:" + "0" * 64


def text_of(image: str) -> str:
    return (ROOT / "images" / image / "Dockerfile").read_text()


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_dockerfile_keeps_the_rule(image: str, rule: Rule) -> None:
    assert list(rule(parse(text_of(image)))) == []


# The text that is there, and what somebody might make of it; the rules in their order.
BROKEN = (
    ("COPY README.md", "ADD README.md"),
    ("ARG PYTHON_IMAGE\n\nFROM", "ARG PYTHON_IMAGE=python:3.11\n\nFROM"),
    ('check_base.sh "${PYTHON_IMAGE}"', "check_base.sh"),
    ("USER 65532:65532", "USER planner"),
    ('ENTRYPOINT ["planner-controller"]', "ENTRYPOINT planner-controller"),
    ("STOPSIGNAL SIGTERM", "STOPSIGNAL SIGKILL"),
    ("RUN sh images/check_base.sh", "RUN pip install uv && sh images/check_base.sh"),
    ("COPY README.md LICENSE sbom.cdx.json ./", "COPY . ./"),
    ("ARG VERSION=unknown", "ARG INDEX_TOKEN"),
    ("org.opencontainers.image.licenses", "licenses"),
)


@pytest.mark.parametrize(("rule", "change"), [*zip(RULES, BROKEN, strict=True)], ids=[rule.__name__ for rule in RULES])
def test_a_rule_catches_what_it_is_for(rule: Rule, change: tuple[str, str]) -> None:
    text = text_of("controller")
    assert change[0] in text
    assert list(rule(parse(text.replace(*change))))


@pytest.mark.parametrize("image", IMAGES)
def test_what_is_copied_is_there_and_reaches_the_build(image: str) -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    taken = {name for stage in parse(text_of(image)).stages for text in stage.all("COPY") for name in sources(text)}
    assert [name for name in sorted(taken) if not (ROOT / name).exists()] == []
    assert {Path(name).parts[0] for name in taken} <= allowed
    assert not allowed & {"tests", "benchmarks", "work", ".git", ".venv"}


def check_base(*images: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", str(ROOT / "images" / "check_base.sh"), *images]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("image", ["", "python:3.11-slim", "python@sha256:", f"python@{DIGEST}0", "python@md5:1"])
def test_a_base_without_its_digest_ends_the_build_with_a_sentence(image: str) -> None:
    refused = check_base(f"python@{DIGEST}", image)
    assert refused.returncode == 2
    assert refused.stderr == f"base image: found '{image}', expected NAME@sha256:DIGEST: give it as --build-arg\n"


def test_a_base_with_its_digest_is_taken() -> None:
    taken = check_base(f"registry.example:5000/python:3.11-slim@{DIGEST}")
    assert (taken.returncode, taken.stderr) == (0, "")


def test_the_two_images_are_made_alike() -> None:
    """They differ in their extras, in Java and in what runs; a repair of one belongs into the other as well."""

    def build(file: Dockerfile) -> list[str]:
        stage = next(stage for stage in file.stages if stage.name == "build")
        lines = [f"{one.keyword} {one.text}" for one in stage.instructions]
        return [line.replace(' "${JAVA_IMAGE}"', "") for line in lines if line != "ARG JAVA_IMAGE"]

    controller, spark = (build(parse(text_of(image))) for image in IMAGES)
    assert [line.replace(" controller", " spark compiled") for line in controller] == spark


EXECUTOR = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "1g",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "exec-3",
    "SPARK_JAVA_OPT_10": "-Dten=a b",
    "SPARK_JAVA_OPT_9": "-Dnine",
    "JAVA_HOME": "/java",
}


def test_an_executor_gets_what_spark_said() -> None:
    words = command(["executor"], EXECUTOR, Path("/spark"))
    assert words[:5] == ["/java/bin/java", "-Dnine", "-Dten=a b", "-Xms1g", "-Xmx1g"]
    assert words[words.index("-cp") + 1] == "/spark/jars/*"
    flags = dict(zip(words[8::2], words[9::2], strict=True))
    assert flags["--driver-url"] == EXECUTOR["SPARK_DRIVER_URL"]
    assert flags["--podName"] == "exec-3"


def test_settings_of_spark_and_hadoop_come_before_the_jars() -> None:
    folders = {"SPARK_CONF_DIR": "/conf", "HADOOP_CONF_DIR": "/hadoop", "SPARK_EXTRA_CLASSPATH": "/extra/*"}
    words = command(["executor"], EXECUTOR | folders, Path("/spark"))
    assert words[words.index("-cp") + 1] == "/conf:/hadoop:/spark/jars/*:/extra/*"


def test_a_driver_is_submitted_here_at_its_address() -> None:
    words = command(
        ["driver", "--class", "A", "local:///app.py"], {"SPARK_DRIVER_BIND_ADDRESS": "10.0.0.7"}, Path("/spark")
    )
    assert words[0] == "/spark/bin/spark-submit"
    assert "spark.driver.bindAddress=10.0.0.7" in words
    assert words[-3:] == ["--class", "A", "local:///app.py"]


@pytest.mark.parametrize("name", [name for name in EXECUTOR if not name.startswith(("SPARK_JAVA", "JAVA"))])
def test_what_spark_did_not_say_is_named(name: str) -> None:
    with pytest.raises(MissingError, match=f"{name} is not set"):
        command(["executor"], {key: value for key, value in EXECUTOR.items() if key != name}, Path("/spark"))


def test_another_command_is_run_as_it_is() -> None:
    assert command(["planner", "--help"], {}, Path("/spark")) == ["planner", "--help"]
    with pytest.raises(MissingError, match="expected driver, executor, or a command"):
        command([], {}, Path("/spark"))
