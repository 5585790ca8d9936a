"""Programs compiled from Go: the build reports its progress, and an interrupted build goes on where it was."""

import re
from pathlib import Path

import pytest

from tests.clusters.kubernetes import go

pytestmark = pytest.mark.cluster


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> go.GoProgram:
    """A program that needs nothing but Go's runtime, with a cache of its own."""
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "go.mod").write_text("module tiny\n\ngo 1.22\n")
    (sources / "main.go").write_text("package main\n\nfunc main() { println(1) }\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(go, "REPORT_EVERY_S", 0.1)
    return go.GoProgram("tiny", "tiny", "tiny", sources, (".",), ("-trimpath",), "tiny, once")


def compiled(program: go.GoProgram) -> list[Path]:
    return list((go.cache_root() / program.kind).glob(".*-compiled"))


def test_an_interrupted_build_goes_on_where_it_was(program: go.GoProgram) -> None:
    progress = re.compile(r"tiny: compiling, (\d+) of (\d+) packages")

    def interrupt(sentence: str) -> None:
        if (match := progress.match(sentence)) and int(match[1]) >= 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        program.binary(interrupt)
    assert compiled(program), "what was compiled has to outlive the interruption"
    sentences: list[str] = []
    binary = program.binary(sentences.append)
    ready = [re.match(r"tiny: (\d+) of (\d+) packages are compiled already", sentence) for sentence in sentences]
    assert [int(match[1]) > 0 for match in ready if match] == [True], sentences
    assert binary.exists()
    assert compiled(program) == [], "what was compiled is of no use once the program is kept"
