"""The filter of all output: nothing of a name steers a terminal, and no password of a URL is ever shown."""

import json

import pytest
import yaml

from planner.documents.yaml import dump_yaml
from planner.errors import BadInputError, OutOfReachError
from planner.printable import json_text, one_line, printable, without_passwords

HOSTILE = "a\x1b[2J\x9b31m\u202etxt\u2066\u200b\ufeff\x7f\x08\r\nb\ud800[bold]\U000e0041"


def test_what_steers_a_terminal_is_written_out() -> None:
    assert one_line(HOSTILE).isprintable()
    assert one_line("\x1b[2J\u202e\n") == r"\x1b[2J\u202e\n"
    assert printable("two\nlines\t\x9b") == "two\nlines\t\\x9b"


@pytest.mark.parametrize("text", ["billing", "Größe – 5 × 3 → 8", "消费者", "🙂", "%RETRY%g|x"])
def test_ordinary_text_stays(text: str) -> None:
    assert one_line(text) == printable(text) == json_text(text) == text


def test_json_and_yaml_hold_the_same_data_and_nothing_raw() -> None:
    """Red when a document that is shown steers the terminal, or is another one because of that."""
    data = {"name": HOSTILE, "plain": "Größe"}
    for text, read in (
        (json_text(json.dumps(data, ensure_ascii=False)), json.loads),
        (dump_yaml({**data, "name": HOSTILE.replace("\ud800", "")}), yaml.safe_load),
    ):
        assert printable(text) == text
        assert "Größe" in text
        assert read(text)["plain"] == "Größe"
    assert json.loads(json_text(json.dumps(data, ensure_ascii=False))) == data
    assert yaml.safe_load(dump_yaml({"name": "a\u202eb\x9bc"})) == {"name": "a\u202eb\x9bc"}


@pytest.mark.parametrize(
    "url",
    [
        "http://user:s3cret@prom:9090/api",
        "https://user:s3cret/x@prom",
        "http://u:a@s3cret@prom",
        "sasl://:s3cret@prom",
        "http://s3cret@prom",
    ],
)
def test_a_password_in_a_url_is_in_no_sentence(url: str) -> None:
    for error in (BadInputError(f"found {url!r}, expected none"), OutOfReachError(url)):
        assert "s3cret" not in str(error)
        assert "://***@prom" in str(error)


def test_a_url_without_a_password_stays() -> None:
    for text in ("http://prom:9090/x y@z", "mail me@host", "http://prom:9090", '{"url": "http://h:1", "by": "a@b"}'):
        assert without_passwords(text) == text
