"""``confluent-kafka`` behind our own errors: each call has a deadline, and nothing of the library passes through."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from planner.errors import BadInputError, OutOfReachError, PlannerError, UnknownNameError
from planner.sources.kafka.errors import RefusedError, answer_error
from planner.sources.kafka.settings import KafkaSettings

_T = TypeVar("_T")
_GRACE_S: Final = 2.0  # the library keeps its own deadline; ours is for the case that it does not
_UNKNOWN_TOPIC: Final = 3
_UNKNOWN_GROUP: Final = 69  # GROUP_ID_NOT_FOUND
_AUTHENTICATION: Final = -169  # RD_KAFKA_RESP_ERR__AUTHENTICATION
_LATE: Final = {-185, -192}  # RD_KAFKA_RESP_ERR__TIMED_OUT, __MSG_TIMED_OUT


class Library:
    """An ``AdminClient`` and the last error that it reported of its connections.

    After a time-out it is replaced before the next call: one that lost a frozen broker was observed to wait for it in
    vain long after the broker was back, while a new one had its answer at once (librdkafka 2.16).
    """

    def __init__(self, bootstrap: str, settings: KafkaSettings, timeout_s: float) -> None:
        self.bootstrap = bootstrap
        self._settings = settings
        self._timeout_s = timeout_s
        self._last_error: KafkaError | None = None
        self._is_stuck = False
        self._client = self._open()

    def results(self, method: str, *arguments: object, **options: object) -> dict[Any, Any]:
        """Return what each of a call's futures gave: its result, or why there is none as an error of ours."""
        return self._await_all(method, self._start(method, *arguments, **options))

    def results_of_many(self, method: str, arguments: Iterable[object]) -> dict[Any, Any]:
        """Return the same for one call an argument, all of them under way at the same time."""
        client = self._fresh()  # one for all: its requests would end with it
        futures: dict[Any, Future[Any]] = {}
        for argument in arguments:
            futures |= getattr(client, method)(argument, request_timeout=self._timeout_s)
        return self._await_all(method, futures)

    def result(self, method: str) -> Any:
        """Return what a call of one future gave; raise an error of ours."""
        result = self._result(method, self._start(method))
        if isinstance(result, PlannerError):
            raise result
        return result

    def _start(self, method: str, *arguments: object, **options: object) -> Any:
        try:
            return getattr(self._fresh(), method)(*arguments, request_timeout=self._timeout_s, **options)
        except Exception as error:  # KafkaException, ValueError and TypeError alike
            raise self.failure(method, error) from error

    def _await_all(self, what: str, futures: Mapping[Any, "Future[Any]"]) -> dict[Any, Any]:
        return {key: self._result(f"{what} {_key_name(key)}", future) for key, future in futures.items()}

    def _fresh(self) -> AdminClient:
        if self._is_stuck:
            self._client, self._is_stuck, self._last_error = self._open(), False, None
        return self._client

    def _result(self, what: str, future: "Future[Any]") -> Any:
        try:
            return future.result(self._timeout_s + _GRACE_S)
        except LateError:
            self._is_stuck = True
            return OutOfReachError(f"Kafka at {self.bootstrap}: no answer to {what} within {self._timeout_s:g} s")
        except Exception as error:  # as above
            return self.failure(what, error)

    def failure(self, what: str, error: Exception) -> PlannerError:
        """Return an error of the library as one of ours."""
        if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
            return self.refusal(what, error.args[0])
        return OutOfReachError(f"Kafka at {self.bootstrap}, {what}: {self._settings.redacted(str(error))}")

    def refusal(self, what: str, error: KafkaError) -> PlannerError:
        """Return an error code as one of our errors."""
        code, text = error.code(), self._settings.redacted(error.str())
        if code in {_UNKNOWN_TOPIC, _UNKNOWN_GROUP}:
            return UnknownNameError(f"Kafka at {self.bootstrap}, {what}: {text}: check the spelling and the cluster")
        if code > 0:
            return answer_error(f"Kafka at {self.bootstrap}, {what}", code, text)
        self._is_stuck = True
        self._client.poll(0)  # lets the library report what it knows of its connections
        last_error = (
            f"; it says: {self._settings.redacted(self._last_error.str())}" if self._last_error is not None else ""
        )
        if self._last_error is not None and self._last_error.code() == _AUTHENTICATION:
            return RefusedError(f"Kafka at {self.bootstrap}, {what}: {text}{last_error}: check the account", code=code)
        late = f"no answer within {self._timeout_s:g} s" if code in _LATE else text
        return OutOfReachError(
            f"Kafka at {self.bootstrap}, {what}: {late}{last_error}: check the address and security.protocol "
            f"({self._settings.protocol})"
        )

    def _open(self) -> AdminClient:
        config: dict[str, Any] = {
            "client.id": "consumer-planner",
            **self._settings.properties,
            "bootstrap.servers": self.bootstrap,
            "log_level": 0,  # librdkafka would write to standard error by itself
            "error_cb": self._listen,
        }
        try:
            return AdminClient(config)
        except Exception as error:
            text = self._settings.redacted(str(error))
            raise BadInputError(f"the Kafka properties cannot be used: {text}") from None

    def _listen(self, error: KafkaError) -> None:
        self._last_error = error


def _key_name(key: object) -> str:
    topic, partition = getattr(key, "topic", None), getattr(key, "partition", None)
    return str(key) if topic is None else f"{topic}/{partition}"


def in_batches(items: Sequence[_T], size: int) -> list[Sequence[_T]]:
    """Return ``items`` in order, at most ``size`` together."""
    return [items[start : start + size] for start in range(0, len(items), size)]
