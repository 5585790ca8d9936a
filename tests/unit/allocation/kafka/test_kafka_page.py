"""docs/strategies-kafka.md and its pictures say what the assignors compute today."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from planner.allocation.kafka import ASSIGNORS

DOCS = Path(__file__).parents[4] / "docs"


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kafka_pictures", DOCS / "strategies-kafka" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_pictures_are_up_to_date(pictures: ModuleType) -> None:
    for scene in pictures.SCENES:
        found = pictures.picture_path(scene).read_text()
        assert found == pictures.picture(scene), "run docs/strategies-kafka/pictures.py"


@pytest.mark.slow
def test_figures_are_up_to_date(pictures: ModuleType) -> None:
    page = (DOCS / "strategies-kafka.md").read_text()
    assert f"{pictures.START}\n{pictures.figures()}\n{pictures.END}" in page, "run docs/strategies-kafka/pictures.py"


def test_every_assignor_has_its_picture_on_the_page(pictures: ModuleType) -> None:
    page = (DOCS / "strategies-kafka.md").read_text()
    assert {scene.strategy for scene in pictures.SCENES} == set(ASSIGNORS)
    for name in ASSIGNORS:
        assert f"### {name}\n" in page
        assert f"](strategies-kafka/{name}.svg)" in page
