"""The filter of all output: nothing of a name steers a terminal, and no password of a URL is ever shown."""

import json

import pytest
import yaml

from planner.documents.yaml import dump_yaml
from planner.errors import BadInputError, OutOfReachError
from planner.text.printable import json_text, one_line, printable, without_passwords

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


@pytest.mark.parametrize(
    "address",
    [
        "user:s3cret@prom:1",
        "user:s3cret/x@prom:9092,other:9092",
        "first:9092,user:s3cret@prom:9092",
        "user:a:s3cret@prom:1",
        "user:a@s3cret@prom:9092",
        ":s3cret@prom:9092",
        "user:s3cret@[::1]:9092 (prom)",
        "http://a:s3cret@prom:1,user:s3cret@prom:2",
    ],
)
def test_a_password_before_an_address_is_in_no_sentence(address: str) -> None:
    """Red where only ``://`` begins an account: brokers are written without it."""
    for text in (f"{address} does not answer", f"--kafka {address}", f"found {address!r}", f"servers={address}"):
        shown = str(OutOfReachError(text))
        assert "s3cret" not in shown
        assert "***@" in shown
        assert "prom" in shown


def test_names_with_an_at_sign_are_no_accounts_and_long_ones_cost_little() -> None:
    for text in (
        "10.0.0.1@12345#99",
        "2001:db8::5@12345#99 of 2001:db8:0:0:0:0:0:5@DEFAULT",
        "registry.example:5000/app@sha256:0123456789abcdef",
        "approved by oidc:alice@example.com",
        "at 12:00 by a@b:c",
    ):
        assert without_passwords(text) == text
    for text in ("a" * 300_000 + "@", ":" * 100_000 + "@", "a:" * 100_000 + "@b", "a@" * 100_000, "a:b@" * 50_000):
        without_passwords(text)  # a filter that goes back over what it read would take hours here


def test_a_url_without_a_password_stays() -> None:
    for text in ("http://prom:9090/x y@z", "mail me@host", "http://prom:9090", '{"url": "http://h:1", "by": "a@b"}'):
        assert without_passwords(text) == text
