"""docs/strategies.md and its pictures say what the strategies compute today."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("strategy_pictures", DOCS / "strategies" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_pictures_are_up_to_date(pictures: ModuleType) -> None:
    for scene in pictures.SCENES:
        assert pictures.picture_path(scene).read_text() == pictures.picture(scene), "run docs/strategies/pictures.py"


def test_figures_are_up_to_date(pictures: ModuleType) -> None:
    page = (DOCS / "strategies.md").read_text()
    assert f"{pictures.START}\n{pictures.figures()}\n{pictures.END}" in page, "run docs/strategies/pictures.py"


def test_every_strategy_has_its_picture_on_the_page(pictures: ModuleType) -> None:
    page = (DOCS / "strategies.md").read_text()
    for scene in pictures.SCENES:
        assert f"](strategies/{scene.name.lower()}.svg)" in page
