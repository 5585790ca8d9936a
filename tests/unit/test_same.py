"""``make same`` sees what it is to see: words that change, not names; fields that are wrong, each once."""

from pathlib import Path

from tests.same.mutations import wrong_versions
from tests.same.texts import sentences


def sentences_of(folder: Path, code: str) -> list[tuple[str, str]]:
    for name in ("planner", "spark_apps", "dags"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "planner" / "module.py").write_text(code, encoding="utf-8")
    return list(sentences(folder))


def test_a_renamed_placeholder_is_the_same_sentence_and_a_changed_word_is_not(tmp_path: Path) -> None:
    code = '"""Docs of it."""\ndef f(x: "A | None") -> None:\n    raise E(f"field {name}: found {value:g}")\n'
    before = sentences_of(tmp_path, code)
    assert before == [("planner", "field {}: found {:g}")]
    assert sentences_of(tmp_path, 'raise E(f"field {field}: found {other:g}")\n') == before
    assert sentences_of(tmp_path, 'raise E(f"field {name}: got {value:g}")\n') != before


def test_every_field_is_wrong_once_in_every_way_and_the_right_document_stays() -> None:
    document = {"kind": "join", "clients": [{"id": "a"}, {"id": "b"}]}
    wrong = dict(wrong_versions(document))
    assert document == {"kind": "join", "clients": [{"id": "a"}, {"id": "b"}]}
    assert wrong["kind left out"] == {"clients": document["clients"]}
    assert wrong["clients.0.id = -1"] == {"kind": "join", "clients": [{"id": -1}, {"id": "b"}]}
    assert all(changed != document for changed in wrong.values())
