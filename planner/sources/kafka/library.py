"""``confluent-kafka`` behind our own errors: each call has a deadline, and nothing of the library passes through."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from planner.errors import BadInputError, OutOfReachError, PlannerError, UnknownNameError
from planner.sources.kafka.errors import RefusedError, answer_error
from planner.sources.kafka.settings import KafkaSettings

_K = TypeVar("_K")
_T = TypeVar("_T")
_GRACE_S: Final = 2.0  # the library keeps its own deadline; ours is for the case that it does not
_UNKNOWN_TOPIC: Final = 3
_GROUP_ID_NOT_FOUND: Final = 69
_AUTHENTICATION: Final = -169  # RD_KAFKA_RESP_ERR__AUTHENTICATION
_LATE: Final = {-185, -192}  # RD_KAFKA_RESP_ERR__TIMED_OUT, __MSG_TIMED_OUT


class Library:
    """An ``AdminClient`` and the last thing that it said of its connections."""

    def __init__(self, bootstrap: str, settings: KafkaSettings, timeout_s: float) -> None:
        self.bootstrap = bootstrap
        self._settings = settings
        self._timeout_s = timeout_s
        self._heard: KafkaError | None = None
        self.client = self._opened()

    def results(
        self, call: Callable[..., Mapping[_K, "Future[_T]"]], *arguments: object, **options: object
    ) -> dict[_K, _T | PlannerError]:
        """Return what each of a call's futures gave: its result, or why there is none as an error of ours."""
        try:
            futures = call(*arguments, request_timeout=self._timeout_s, **options)
        except Exception as error:  # KafkaException, ValueError and TypeError alike
            failure = self.failure(call.__name__, error)
            raise failure from error
        return self.awaited(call.__name__, futures)

    def awaited(self, what: str, futures: Mapping[_K, "Future[_T]"]) -> dict[_K, _T | PlannerError]:
        """Return what each future gave: its result, or why there is none as an error of ours."""
        found: dict[_K, _T | PlannerError] = {}
        for key, future in futures.items():
            said: _T | PlannerError = self._result(f"{what} {_named(key)}", future)
            found[key] = said
        return found

    def result(self, call: Callable[..., "Future[_T]"], **options: object) -> _T:
        """Return what a call of one future gave; raise an error of ours."""
        found = self._result(call.__name__, call(request_timeout=self._timeout_s, **options))
        if isinstance(found, PlannerError):
            raise found
        return found

    def _result(self, what: str, future: "Future[_T]") -> _T | PlannerError:
        try:
            return future.result(self._timeout_s + _GRACE_S)
        except LateError:
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
        code, said = error.code(), self._settings.redacted(error.str())
        if code in {_UNKNOWN_TOPIC, _GROUP_ID_NOT_FOUND}:
            return UnknownNameError(f"Kafka at {self.bootstrap}, {what}: {said}: check the spelling and the cluster")
        if code > 0:
            return answer_error(f"Kafka at {self.bootstrap}, {what}", code, said)
        self.client.poll(0)  # lets the library tell what it knows of its connections
        told = f"; it says: {self._settings.redacted(self._heard.str())}" if self._heard is not None else ""
        if self._heard is not None and self._heard.code() == _AUTHENTICATION:
            return RefusedError(f"Kafka at {self.bootstrap}, {what}: {said}{told}: check the account", code=code)
        late = f"no answer within {self._timeout_s:g} s" if code in _LATE else said
        return OutOfReachError(
            f"Kafka at {self.bootstrap}, {what}: {late}{told}: check the address and security.protocol "
            f"({self._settings.protocol})"
        )

    def _opened(self) -> AdminClient:
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
            said = self._settings.redacted(str(error))
            raise BadInputError(f"the Kafka properties cannot be used: {said}") from None

    def _listen(self, error: KafkaError) -> None:
        self._heard = error


def _named(key: object) -> str:
    topic, partition = getattr(key, "topic", None), getattr(key, "partition", None)
    return str(key) if topic is None else f"{topic}/{partition}"


def in_parts(items: Sequence[_T], size: int) -> list[Sequence[_T]]:
    """Return ``items`` in order, at most ``size`` together."""
    return [items[start : start + size] for start in range(0, len(items), size)]
