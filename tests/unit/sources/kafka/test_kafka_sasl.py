"""SASL exchanges against the worked examples of RFC 7677 and RFC 4616, and against brokers that cheat."""

import pytest

from planner.sources.kafka import ProtocolError, sasl

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PROOF = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_plain_is_as_in_rfc_4616() -> None:
    talk = sasl.exchange("PLAIN", "tim", "tanstaaftanstaaf")
    assert next(talk) == b"\0tim\0tanstaaftanstaaf"
    with pytest.raises(StopIteration):
        talk.send(b"")


def test_scram_sha_256_is_as_in_rfc_7677(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sasl.secrets, "token_urlsafe", lambda _: NONCE)
    talk = sasl.exchange("SCRAM-SHA-256", "user", "pencil")
    assert next(talk) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert talk.send(SERVER_FIRST) == PROOF
    with pytest.raises(StopIteration):
        talk.send(SERVER_FINAL)


def test_commas_and_equals_signs_in_a_name_are_escaped() -> None:
    assert next(sasl.exchange("SCRAM-SHA-512", "a=b,c", "x")).startswith(b"n,,n=a=3Db=2Cc,r=")


@pytest.mark.parametrize(
    ("server_first", "complaint"),
    [
        (SERVER_FIRST.replace(b"rOpr", b"xxxx"), "nonce or a number of rounds"),
        (SERVER_FIRST.replace(b"i=4096", b"i=99999999"), "nonce or a number of rounds"),
        (SERVER_FIRST.replace(b"i=4096", b"i=4095"), "nonce or a number of rounds"),
        (SERVER_FIRST.replace(b"i=4096", b"i=" + b"9" * 4_000), "nonce or a number of rounds"),
        (SERVER_FIRST.replace(b"i=4096", b"i=" + b"9" * 5_000), "has 5082 bytes, expected 4096 at most"),
        (SERVER_FIRST.replace(b"i=4096", b"i=none"), "nonce or a number of rounds"),
        (SERVER_FIRST.replace(b",i=4096", b""), "lacks i"),
        (SERVER_FIRST.replace(b"W22Z", b"!!!!"), "not base64"),
        (b"\xff\xfe", "cannot be read"),
        (b"nothing", "cannot be read"),
    ],
)
def test_a_broker_that_cheats_is_found_out(
    monkeypatch: pytest.MonkeyPatch, server_first: bytes, complaint: str
) -> None:
    monkeypatch.setattr(sasl.secrets, "token_urlsafe", lambda _: NONCE)
    talk = sasl.exchange("SCRAM-SHA-256", "user", "pencil")
    next(talk)
    with pytest.raises(ProtocolError, match=complaint):
        talk.send(server_first)


def test_a_broker_that_does_not_know_the_password_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sasl.secrets, "token_urlsafe", lambda _: NONCE)
    talk = sasl.exchange("SCRAM-SHA-256", "user", "pencil")
    next(talk)
    talk.send(SERVER_FIRST)
    with pytest.raises(ProtocolError, match="it is not who it says it is"):
        talk.send(SERVER_FINAL.replace(b"6rri", b"AAAA"))
