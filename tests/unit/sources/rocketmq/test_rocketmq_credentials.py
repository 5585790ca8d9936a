"""Signatures: the vectors of RocketMQ's own test and of our notes; and that no secret is told."""

import logging
import traceback
from dataclasses import fields
from pathlib import Path

import pytest

from planner.errors import BadInputError
from planner.sources.rocketmq import AnswerError, Credentials, RocketMQAdmin, codec, requests
from planner.sources.rocketmq.codec import Command
from planner.sources.rocketmq.credentials import signature
from tests.unit.sources.rocketmq.fake_server import FakeServer, Wire

SECRET, TOKEN = "hunter2-hunter2", "token-of-an-hour"
ACCOUNT = Credentials("reader", SECRET, TOKEN)


def test_vector_of_rocketmq_itself() -> None:
    assert signature("12345678", b"RocketMQ") == "IUc8rrO/0gDch8CjObLQsW2rsiA="


def test_vector_of_a_whole_request() -> None:
    signed = Credentials("rocketmq2", "12345678").signed({"topic": "TopicA", "consumerGroup": "GroupA"})
    assert signed == {
        "topic": "TopicA",
        "consumerGroup": "GroupA",
        "AccessKey": "rocketmq2",
        "Signature": "YC2ZFCQq4OiIEUsUG0xk2mAxTFk=",
    }


def test_token_and_body_are_signed_and_an_old_signature_is_not() -> None:
    signed = ACCOUNT.signed({"b": "2", "a": "1", "Signature": "old"}, b"body")
    assert signed["SecurityToken"] == TOKEN
    assert signed["Signature"] == signature(SECRET, f"reader{TOKEN}12body".encode())


def test_a_frame_is_signed_as_it_is_sent() -> None:
    frame = codec.encode_request(requests.running_info("g", "c"), 1, credentials=ACCOUNT)
    told = dict(codec.decode(frame[4:]).fields)
    found = told.pop("Signature")
    assert told.keys() == {"AccessKey", "SecurityToken", "consumerGroup", "clientId", "jstackEnable"}
    assert found == signature(SECRET, "".join(told[name] for name in sorted(told)).encode())


@pytest.mark.parametrize(("access_key", "secret_key"), [("", SECRET), ("reader", ""), ("", "")])
def test_half_an_account_is_refused(access_key: str, secret_key: str) -> None:
    with pytest.raises(BadInputError, match="give both or neither") as caught:
        Credentials(access_key, secret_key)
    assert SECRET not in str(caught.value)


def test_no_text_of_an_account_holds_a_secret() -> None:
    assert len(fields(ACCOUNT)) == 3
    assert repr(ACCOUNT) == str(ACCOUNT) == f"{ACCOUNT}" == "Credentials(access_key='reader', secret_key=(hidden))"


def test_no_error_and_no_log_holds_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(request: Command, wire: Wire) -> None:
        wire.answer(request, code=16, remark=f"reader with {SECRET} and {TOKEN} may not")

    caplog.set_level(logging.DEBUG)
    with FakeServer(refuse) as server, RocketMQAdmin(server.address, credentials=ACCOUNT) as admin:
        with pytest.raises(AnswerError, match=r"reader with \(hidden\) and \(hidden\) may not") as caught:
            admin.member_ids(server.address, "g")
        (request,) = server.requests
    assert request.fields["AccessKey"] == "reader"
    told = "".join(traceback.format_exception(caught.value)) + caught.value.remark + repr(vars(admin))
    told += "".join(str(vars(record)) for record in caplog.records)
    for secret in (SECRET, TOKEN, request.fields["Signature"]):
        assert secret not in told


@pytest.mark.parametrize(
    "text",
    [
        "accessKey: reader\nsecretKey: a:b=c==\n",
        "# of the planner\naccessKey=reader\nsecretKey=a:b=c==\nother: x",
        "accessKey : 'reader'\r\nsecretKey = \"a:b=c==\"\r\n",
    ],
)
def test_account_is_read_from_a_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "account"
    path.write_text(text)
    assert Credentials.read(path) == Credentials("reader", "a:b=c==")
    path.write_text(f"{text}\nsecurityToken: t-1")
    assert Credentials.read(path) == Credentials("reader", "a:b=c==", "t-1")


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        (b"", "accessKey and secretKey"),
        (b"hunter2", "accessKey and secretKey"),
        (b"accessKey: reader\nsecretKey:\n", "secretKey"),
        (b"accesskey: reader\nsecretKey: hunter2", "accessKey"),
        (b"\xff\xfehunter2", "not UTF-8"),
    ],
)
def test_file_without_an_account_is_refused_and_not_quoted(tmp_path: Path, text: bytes, lacks: str) -> None:
    path = tmp_path / "account"
    path.write_bytes(text)
    with pytest.raises(BadInputError, match=lacks) as caught:
        Credentials.read(path)
    assert str(path) in str(caught.value)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"nowhere cannot be read \(No such file"):
        Credentials.read(tmp_path / "nowhere")
